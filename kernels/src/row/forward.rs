//! The passes that compute rows.

use std::cell::Cell;

use super::Reduction;
use super::body::{Body, ComputedFloat, KEPT, MOST_LEVELS, MOST_REDUCTIONS, RowError, Rows};
use super::lane::Lane;
use super::operands::{Operands, positions, zeros_for};
use super::pass::{Pass, State, passes, reduce};
use super::place::put;
use super::scope::{ReductionArguments, Scope, scope};
use super::structure::Structure;
use super::sweep::{LANES, Lanes, Sections, Sweep, sweep};
use crate::memory::stream::fence;
use crate::runtime::simd::clones;

/// A body at machine numbers.
struct Plain<'a, T, B, const I: usize, const X: usize, const O: usize> {
    body: &'a B,
    n: usize,
    inputs: Operands<T, I>,
    at: [i64; X],
    known: &'a [T; MOST_REDUCTIONS],
    kept: *mut T,
    running: *mut T,
}

impl<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> Plain<'_, T, B, I, X, O> {
    /// The outputs at a position, and the arguments of reductions there.
    ///
    /// # Safety
    /// The position is in the row, or the row is empty. There are [`KEPT`] places for kept values.
    #[inline(always)]
    unsafe fn at<const P: usize>(&self, position: usize, keeps: *mut T) -> ([T; O], ReductionArguments<T>) {
        let (n, kept, running) = (self.n, self.kept.wrapping_add(position), self.running.wrapping_add(position));
        scope!(scope: T, known self.known, kept kept, keeps keeps, running running, direction usize::MAX, position position, count n);
        let mut inputs = [Lane::<T, P>::outside(T::ZERO); I];
        for i in 0..I {
            // SAFETY: by contract.
            let x = unsafe { self.inputs.element(i, B::ALONG[i], position) };
            inputs[i] = Lane::new(x, B::ALONG[i], &scope);
        }
        let results = self.body.eval(inputs, self.at);
        let mut outputs = [T::ZERO; O];
        for k in 0..O {
            outputs[k] = results[k].value();
        }
        (outputs, scope.reduction_arguments(B::REDUCTIONS))
    }

    /// Writes the outputs, in the pass after the last reduction.
    ///
    /// # Safety
    /// The outputs have room for a row, or for one number.
    #[inline(always)]
    unsafe fn write<const P: usize>(&self, outputs: &[*mut T; O], large: &[bool; O], sections: &mut Sections<T>) {
        if B::GIVES.contains(&true) {
            let outputs = Outputs::<_, T, O, P> { row: self, outputs, large };
            // SAFETY: by contract.
            unsafe { sweep(&outputs, self.n, &[None; O], sections) };
        }
        if B::GIVES.contains(&false) {
            let mut keeps = [[T::ZERO; LANES]; KEPT];
            // SAFETY: position 0, which is valid even for an empty row.
            let (results, _) = unsafe { self.at::<P>(0, keeps.as_mut_ptr().cast()) };
            for k in 0..O {
                if !B::GIVES[k] {
                    // SAFETY: by contract.
                    unsafe { *outputs[k] = results[k] };
                }
            }
        }
    }
}

/// The sweep that writes the outputs.
struct Outputs<'a, R, T, const O: usize, const P: usize> {
    row: &'a R,
    outputs: &'a [*mut T; O],
    large: &'a [bool; O],
}

impl<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize, const P: usize> Sweep<T, O>
    for Outputs<'_, Plain<'_, T, B, I, X, O>, T, O, P>
{
    const ACCUMULATED: usize = 0;

    #[inline(always)]
    fn begin(&self, start: usize, len: usize) {
        if P > 0 {
            self.row.inputs.prefetch_next(&B::ALONG, start, len);
        }
    }

    #[inline(always)]
    unsafe fn element(&self, position: usize, lane: usize, values: &mut [Lanes<T>; O], kept: &mut [Lanes<T>; KEPT]) {
        // SAFETY: by contract.
        unsafe {
            let (results, _) = self.row.at::<P>(position, kept.as_mut_ptr().cast::<T>().add(lane));
            for k in 0..O {
                *values[k].get_unchecked_mut(lane) = results[k];
            }
        }
    }

    #[inline(always)]
    unsafe fn end(&self, start: usize, len: usize, values: &[Lanes<T>; O], _kept: &[Lanes<T>; KEPT]) {
        for k in 0..O {
            if B::GIVES[k] {
                // SAFETY: by contract.
                unsafe { put(&values[k], self.outputs[k].wrapping_add(start), len, self.large[k]) };
            }
        }
    }
}

impl<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> Pass<T>
    for Plain<'_, T, B, I, X, O>
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
    fn prefetch_next(&self, start: usize, len: usize) {
        if !B::GIVES.contains(&true) {
            self.inputs.prefetch_next(&B::ALONG, start, len);
        }
    }

    #[inline(always)]
    unsafe fn reduction_arguments<const P: usize>(&self, position: usize, keeps: *mut T) -> ReductionArguments<T> {
        // SAFETY: by contract.
        unsafe { self.at::<P>(position, keeps) }.1
    }
}

clones! {
    <[T, B, const I: usize, const X: usize, const O: usize]>
    fn run(
        computes: &B,
        n: usize,
        rows: usize,
        inputs: &[Rows<*const T>; I],
        at: &[Rows<*const i64>; X],
        outputs: &[Rows<*mut T>; O],
    ) -> Result<(), RowError>
    where [T: ComputedFloat, B: Body<I, X, O>] if [T::FOR_EACH_LEVEL] {
        let (structure, checked) = Structure::of::<T, B, I, X, O>(computes);
        checked?;
        let mut state = State::new(&structure, n);
        let zeros = zeros_for(n, inputs);
        let mut large = [false; O];
        for k in 0..O {
            large[k] = outputs[k].is_large;
        }
        for row in 0..rows {
            // SAFETY: these rows are valid by the contract of `forward`.
            let (at, inputs) = unsafe {
                (positions(n, row, at)?, Operands::of(n, row, inputs, &B::ALONG, &zeros))
            };
            let mut places = [std::ptr::null_mut(); O];
            for k in 0..O {
                places[k] = outputs[k].row(row);
            }
            passes!(B, P => {
                let (known, kept, running) = (state.known, state.kept.as_mut_ptr(), state.running.as_mut_ptr());
                let here = Plain::<T, B, I, X, O> { body: computes, n, inputs, at, known: &known, kept, running };
                if P < B::LEVELS.1 && P < structure.levels {
                    reduce::<T, _, P>(&here, &structure, &mut state.known, &mut state.sections);
                } else if P >= B::LEVELS.0 && P == structure.levels {
                    // SAFETY: as above.
                    unsafe { here.write::<P>(&places, &large, &mut state.sections) };
                }
            });
        }
        if large.contains(&true) {
            fence();
        }
        Ok(())
    }
}

/// Computes `rows` rows of `n` elements.
///
/// # Safety
/// Every operand has `rows` rows: of `n` elements if the body declares one value per element, of one value otherwise.
/// An absent input is null with a step of 0. Outputs overlap nothing.
pub unsafe fn forward<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
    body: &B,
    n: usize,
    rows: usize,
    inputs: &[Rows<*const T>; I],
    at: &[Rows<*const i64>; X],
    outputs: &[Rows<*mut T>; O],
) -> Result<(), RowError> {
    const { assert!(B::REDUCTIONS <= MOST_REDUCTIONS && MOST_LEVELS == 4) };
    run(body, n, rows, inputs, at, outputs)
}
