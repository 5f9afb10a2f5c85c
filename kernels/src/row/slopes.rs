//! [`InRow`]: a body at dual numbers, for one row.

use std::cell::Cell;

use super::Reduction;
use super::body::{Body, Computed, MOST_REDUCTIONS};
use super::lane::Lane;
use super::pass::{Arguments, Met, Pass};
use super::scope::{Scope, scope};
use crate::dual::Dual;

/// The result of evaluating the body once at dual numbers.
pub struct Slopes<T, const O: usize> {
    /// The derivatives of the outputs, unless they are known to be 0.
    pub outputs: [Option<T>; O],
    /// The derivatives of the reductions' arguments.
    pub tangents: [Option<T>; MOST_REDUCTIONS],
    pub met: Met<T>,
}

/// A body at dual numbers, with the arguments of one row.
pub struct InRow<'a, T, B, const I: usize, const X: usize, const O: usize> {
    pub body: &'a B,
    pub arguments: &'a Arguments<T, I, X>,
    pub cotangents: &'a [*const T; O],
    /// The cotangents of the next row.
    pub next: &'a [*const T; O],
    pub known: &'a [T; MOST_REDUCTIONS],
    pub kept: *mut T,
    pub running: *mut T,
    /// The adjoints of the arguments of running sums: a row for each reduction.
    pub carried: *mut T,
}

impl<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> InRow<'_, T, B, I, X, O> {
    /// Evaluates the body in pass `P`. The variable is the reduction `direction` or the input `wrt`.
    ///
    /// # Safety
    /// The position is in the row, or the row is empty.
    #[inline(always)]
    pub unsafe fn at<const P: usize>(&self, position: usize, direction: usize, wrt: usize) -> Slopes<T, O> {
        let n = self.arguments.n;
        let (kept, running) = (self.kept.wrapping_add(position), self.running.wrapping_add(position));
        scope!(scope: T, known self.known, kept kept, running running, direction direction, position position, count n);
        // SAFETY: by contract.
        let x = unsafe { self.arguments.element(&B::ALONG, position) };
        let mut inputs = [Dual::constant_of(Lane::<T, P>::outside(T::ZERO)); I];
        for i in 0..I {
            let value = Lane::new(x[i], B::ALONG[i], &scope);
            inputs[i] = if i == wrt { Dual::variable(value) } else { Dual::constant_of(value) };
        }
        let results = self.body.eval(inputs, self.arguments.at);
        let mut slopes =
            Slopes { outputs: [None; O], tangents: [None; MOST_REDUCTIONS], met: scope.met(B::REDUCTIONS) };
        for k in 0..O {
            slopes.outputs[k] = results[k].tangent.known();
        }
        for k in 0..B::REDUCTIONS {
            slopes.tangents[k] = scope.tangent[k].get();
        }
        slopes
    }

    /// `Σ ȳ ∂h` over the outputs that have (or don't have) one value per element, unless it is known to be 0.
    ///
    /// # Safety
    /// As for [`InRow::at`].
    #[inline(always)]
    pub unsafe fn pulled(&self, slopes: &Slopes<T, O>, position: usize, along: bool) -> Option<T> {
        let mut sum = None;
        for k in 0..O {
            if let (Some(slope), true) = (slopes.outputs[k], B::GIVES[k] == along) {
                // SAFETY: by contract.
                let cotangent = unsafe { *self.cotangents[k].add(if along { position } else { 0 }) };
                sum = added(sum, cotangent * slope);
            }
        }
        sum
    }

    /// The derivative of a reduction by its argument at this position. Max and min are treated as if they had one
    /// winner.
    #[inline(always)]
    pub fn share(&self, slopes: &Slopes<T, O>, k: usize) -> T {
        let (argument, result) = (slopes.met.arguments[k], self.known[k]);
        match slopes.met.kinds[k].0 {
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
        slopes: &Slopes<T, O>,
        k: usize,
        position: usize,
        adjoints: &[T; MOST_REDUCTIONS],
    ) -> T {
        match B::RUNS && slopes.met.kinds[k].0.is_running() {
            // SAFETY: by contract.
            true => unsafe { *self.carried.add(k * self.arguments.n + position) },
            false => adjoints[k] * self.share(slopes, k),
        }
    }

    /// The cotangent of an input at this position, without the part from outputs with one value per row.
    ///
    /// # Safety
    /// The position is in the row.
    #[inline(always)]
    pub unsafe fn pull<const P: usize>(&self, position: usize, wrt: usize, adjoints: &[T; MOST_REDUCTIONS]) -> T {
        // SAFETY: by contract.
        let slopes = unsafe { self.at::<P>(position, usize::MAX, wrt) };
        // SAFETY: as above.
        let mut sum = unsafe { self.pulled(&slopes, position, true) };
        for k in 0..B::REDUCTIONS {
            if let Some(tangent) = slopes.tangents[k] {
                // SAFETY: as above.
                sum = added(sum, unsafe { self.adjoint(&slopes, k, position, adjoints) } * tangent);
            }
        }
        sum.unwrap_or(T::ZERO)
    }
}

impl<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> Pass<T>
    for InRow<'_, T, B, I, X, O>
{
    const REDUCTIONS: usize = B::REDUCTIONS;
    const RUNS: bool = B::RUNS;

    #[inline(always)]
    fn len(&self) -> usize {
        self.arguments.n
    }

    #[inline(always)]
    unsafe fn meet<const P: usize>(&self, position: usize) -> Met<T> {
        // SAFETY: by contract.
        unsafe { self.at::<P>(position, usize::MAX, usize::MAX) }.met
    }
}

/// Adds to a sum that may be empty. An empty sum is replaced instead of adding to 0, which would change a −0.
#[inline(always)]
pub fn added<T: Computed>(sum: Option<T>, part: T) -> Option<T> {
    Some(match sum {
        Some(sum) => sum + part,
        None => part,
    })
}

/// Runs `$do` with `$k` as each number below the bound. `$k` is a constant, so that each loop over a row is compiled
/// for its variable. A body with a variable number of passes has one loop for all directions, because it would have
/// many loops.
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
pub(super) use directions;
