//! [`InRow`]: a body at dual numbers, for one row.

use std::cell::Cell;

use super::Reduction;
use super::body::{Body, ComputedFloat, MOST_REDUCTIONS};
use super::lane::Lane;
use super::operands::Operands;
use super::pass::Pass;
use super::scope::{ReductionArguments, Scope, scope};
use crate::number::Dual;

/// The result of evaluating the body once at dual numbers.
pub struct Partials<T, const O: usize> {
    /// The derivatives of the outputs, unless they are known to be 0.
    pub outputs: [Option<T>; O],
    /// The derivatives of the reductions' arguments.
    pub tangents: [Option<T>; MOST_REDUCTIONS],
    pub reductions: ReductionArguments<T>,
}

/// A body at dual numbers, with the arguments of one row.
pub struct InRow<'a, T, B, const I: usize, const X: usize, const O: usize> {
    pub body: &'a B,
    pub n: usize,
    pub inputs: Operands<T, I>,
    pub at: [i64; X],
    pub cotangents: Operands<T, O>,
    pub known: &'a [T; MOST_REDUCTIONS],
    pub kept: *mut T,
    pub running: *mut T,
    /// The adjoints of the arguments of running sums: a row for each reduction.
    pub carried: *mut T,
}

impl<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> InRow<'_, T, B, I, X, O> {
    /// Evaluates the body in pass `P`. The variable is the reduction `direction` or the input `wrt`.
    ///
    /// # Safety
    /// The position is in the row, or the row is empty. There are `KEPT` places for kept values.
    #[inline(always)]
    pub unsafe fn at<const P: usize>(
        &self,
        position: usize,
        direction: usize,
        wrt: usize,
        keeps: *mut T,
    ) -> Partials<T, O> {
        let n = self.n;
        let (kept, running) = (self.kept.wrapping_add(position), self.running.wrapping_add(position));
        scope!(scope: T, known self.known, kept kept, keeps keeps, running running, direction direction, position position, count n);
        let mut inputs = [Dual::constant_of(Lane::<T, P>::outside(T::ZERO)); I];
        for i in 0..I {
            // SAFETY: by contract.
            let x = unsafe { self.inputs.element(i, B::ALONG[i], position) };
            let value = Lane::new(x, B::ALONG[i], &scope);
            inputs[i] = if i == wrt { Dual::variable(value) } else { Dual::constant_of(value) };
        }
        let results = self.body.eval(inputs, self.at);
        let mut partials = Partials {
            outputs: [None; O],
            tangents: [None; MOST_REDUCTIONS],
            reductions: scope.reduction_arguments(B::REDUCTIONS),
        };
        for k in 0..O {
            partials.outputs[k] = results[k].tangent.known();
        }
        for k in 0..B::REDUCTIONS {
            partials.tangents[k] = scope.tangent[k].get();
        }
        partials
    }

    /// `Σ ȳ ∂h` over the outputs that have (or don't have) one value per element, unless it is known to be 0.
    ///
    /// # Safety
    /// As for [`InRow::at`].
    #[inline(always)]
    pub unsafe fn pulled(&self, partials: &Partials<T, O>, position: usize, along: bool) -> Option<T> {
        let mut sum = None;
        for k in 0..O {
            if let (Some(partial), true) = (partials.outputs[k], B::GIVES[k] == along) {
                // SAFETY: by contract.
                let cotangent = unsafe { self.cotangents.element(k, along, position) };
                sum = added(sum, cotangent * partial);
            }
        }
        sum
    }

    /// The derivative of a reduction by its argument at this position. Max and min are treated as if they had one
    /// winner.
    #[inline(always)]
    pub fn share(&self, partials: &Partials<T, O>, k: usize) -> T {
        let (argument, result) = (partials.reductions.arguments[k], self.known[k]);
        match partials.reductions.kinds[k].0 {
            Reduction::Sum | Reduction::Cumsum | Reduction::ReverseCumsum => T::one(),
            Reduction::Prod => result / argument,
            Reduction::Max | Reduction::Min => T::select(argument.equal(result), T::one(), T::ZERO),
        }
    }

    /// The adjoint of a reduction's argument at this position.
    ///
    /// # Safety
    /// As for [`InRow::at`].
    #[inline(always)]
    pub unsafe fn adjoint(
        &self,
        partials: &Partials<T, O>,
        k: usize,
        position: usize,
        adjoints: &[T; MOST_REDUCTIONS],
    ) -> T {
        match B::RUNS && partials.reductions.kinds[k].0.is_running() {
            // SAFETY: by contract.
            true => unsafe { *self.carried.add(k * self.n + position) },
            false => adjoints[k] * self.share(partials, k),
        }
    }

    /// The cotangent of an input at this position, without the part from outputs with one value per row.
    ///
    /// # Safety
    /// The position is in the row.
    #[inline(always)]
    pub unsafe fn pull<const P: usize>(
        &self,
        position: usize,
        wrt: usize,
        adjoints: &[T; MOST_REDUCTIONS],
        keeps: *mut T,
    ) -> T {
        // SAFETY: by contract.
        let partials = unsafe { self.at::<P>(position, usize::MAX, wrt, keeps) };
        // SAFETY: as above.
        let mut sum = unsafe { self.pulled(&partials, position, true) };
        for k in 0..B::REDUCTIONS {
            if let Some(tangent) = partials.tangents[k] {
                // SAFETY: as above.
                sum = added(sum, unsafe { self.adjoint(&partials, k, position, adjoints) } * tangent);
            }
        }
        sum.unwrap_or(T::ZERO)
    }
}

impl<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> Pass<T>
    for InRow<'_, T, B, I, X, O>
{
    const REDUCTIONS: usize = B::REDUCTIONS;
    const RUNS: bool = B::RUNS;

    #[inline(always)]
    fn len(&self) -> usize {
        self.n
    }

    #[inline(always)]
    fn kept(&self) -> *mut T {
        self.kept
    }

    #[inline(always)]
    fn running(&self) -> *mut T {
        self.running
    }

    #[inline(always)]
    unsafe fn reduction_arguments<const P: usize>(&self, position: usize, keeps: *mut T) -> ReductionArguments<T> {
        // SAFETY: by contract.
        unsafe { self.at::<P>(position, usize::MAX, usize::MAX, keeps) }.reductions
    }
}

/// Adds to a sum that may be empty. An empty sum is replaced instead of adding to 0, which would change a −0.
#[inline(always)]
pub fn added<T: ComputedFloat>(sum: Option<T>, part: T) -> Option<T> {
    Some(match sum {
        Some(sum) => sum + part,
        None => part,
    })
}

/// Runs `$do` with `$k` as each number below the bound. `$k` is a constant, so that each loop over a row is compiled
/// for its variable. A body with a variable number of passes has one loop for all directions, because it would have
/// many loops.
#[cfg(not(debug_assertions))]
macro_rules! directions {
    ($body:ty, $bound:expr, $k:ident => $do:expr) => {{
        macro_rules! direction {
            ($number:literal) => {
                if $number < $bound {
                    let $k: usize = $number;
                    $do
                }
            };
        }
        if <$body>::LEVELS.0 == <$body>::LEVELS.1 {
            direction!(0);
            direction!(1);
            direction!(2);
            direction!(3);
            direction!(4);
            direction!(5);
            direction!(6);
            direction!(7);
        } else {
            for $k in 0..$bound {
                $do
            }
        }
    }};
}
/// Runs `$do` with `$k` as each number below the bound. Debug builds compile it once.
#[cfg(debug_assertions)]
macro_rules! directions {
    ($body:ty, $bound:expr, $k:ident => $do:expr) => {
        for $k in 0..$bound {
            $do
        }
    };
}
pub(super) use directions;
