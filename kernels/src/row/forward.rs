//! The passes that compute rows.

use std::cell::Cell;

use super::Reduction;
use super::accumulators::LANES;
use super::body::{Body, Computed, MOST_LEVELS, MOST_REDUCTIONS, RowError, Rows};
use super::lane::Lane;
use super::pass::{Arguments, Pass, State, blocks, passes, put, reduce, zeros_for};
use super::scope::{ReductionArguments, Scope, scope};
use super::structure::Structure;
use crate::memory::Aligned;
use crate::memory::stream::fence;
use crate::runtime::simd::clones;

/// A body at machine numbers.
struct Plain<'a, T, B, const I: usize, const X: usize, const O: usize> {
    body: &'a B,
    arguments: &'a Arguments<T, I, X>,
    known: &'a [T; MOST_REDUCTIONS],
    kept: *mut T,
    running: *mut T,
}

impl<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> Plain<'_, T, B, I, X, O> {
    /// The outputs at a position, and the arguments of reductions there.
    ///
    /// # Safety
    /// The position is in the row, or the row is empty.
    #[inline(always)]
    unsafe fn at<const P: usize>(&self, position: usize) -> ([T; O], ReductionArguments<T>) {
        let (n, kept, running) =
            (self.arguments.n, self.kept.wrapping_add(position), self.running.wrapping_add(position));
        scope!(scope: T, known self.known, kept kept, running running, direction usize::MAX, position position, count n);
        // SAFETY: by contract.
        let x = unsafe { self.arguments.element(&B::ALONG, position) };
        let mut inputs = [Lane::<T, P>::outside(T::ZERO); I];
        for i in 0..I {
            inputs[i] = Lane::new(x[i], B::ALONG[i], &scope);
        }
        let results = self.body.eval(inputs, self.arguments.at);
        let mut outputs = [T::ZERO; O];
        for k in 0..O {
            outputs[k] = results[k].value();
        }
        (outputs, scope.reduction_arguments(B::REDUCTIONS))
    }

    /// Writes the outputs, in the pass after the last reduction. It works block by block, so that the compiler knows
    /// that no store changes what is read.
    ///
    /// # Safety
    /// The outputs have room for a row, or for one number.
    #[inline(always)]
    unsafe fn write<const P: usize>(&self, outputs: &[*mut T; O], large: &[bool; O]) {
        let mut lanes = Aligned([[T::ZERO; LANES]; O]);
        if B::GIVES.contains(&true) {
            blocks!(self.arguments.n, start, len => {
                if P > 0 {
                    self.arguments.prefetch_next(&B::ALONG, start, len);
                }
                for j in 0..len {
                    // SAFETY: the position is in the row.
                    let (results, _) = unsafe { self.at::<P>(start + j) };
                    for k in 0..O {
                        // SAFETY: `len` is at most LANES, which the compiler can't see.
                        unsafe { *lanes[k].get_unchecked_mut(j) = results[k] };
                    }
                }
                for k in 0..O {
                    if B::GIVES[k] {
                        // SAFETY: by contract.
                        unsafe { put(&lanes[k], outputs[k].wrapping_add(start), len, large[k]) };
                    }
                }
            });
        }
        // SAFETY: position 0, which is valid even for an empty row.
        let (results, _) = unsafe { self.at::<P>(0) };
        for k in 0..O {
            if !B::GIVES[k] {
                // SAFETY: by contract.
                unsafe { *outputs[k] = results[k] };
            }
        }
    }
}

impl<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> Pass<T>
    for Plain<'_, T, B, I, X, O>
{
    const REDUCTIONS: usize = B::REDUCTIONS;
    const RUNS: bool = B::RUNS;

    #[inline(always)]
    fn len(&self) -> usize {
        self.arguments.n
    }

    #[inline(always)]
    fn prefetch_next(&self, start: usize, len: usize) {
        if !B::GIVES.contains(&true) {
            self.arguments.prefetch_next(&B::ALONG, start, len);
        }
    }

    #[inline(always)]
    unsafe fn reduction_arguments<const P: usize>(&self, position: usize) -> ReductionArguments<T> {
        // SAFETY: by contract.
        unsafe { self.at::<P>(position) }.1
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
    where [T: Computed, B: Body<I, X, O>] if [T::VECTORIZE] {
        let structure = Structure::of::<T, B, I, X, O>(computes)?;
        let mut state = State::new(&structure, n);
        let zeros = zeros_for(n, inputs);
        let mut large = [false; O];
        for k in 0..O {
            large[k] = outputs[k].is_large;
        }
        for row in 0..rows {
            // SAFETY: these rows are valid by the contract of `forward`.
            let arguments = unsafe { Arguments::of(n, row, inputs, at, &B::ALONG, &zeros)? };
            let mut places = [std::ptr::null_mut(); O];
            for k in 0..O {
                places[k] = outputs[k].row(row);
            }
            passes!(B, P => {
                let (known, kept, running) = (state.known, state.kept.as_mut_ptr(), state.running.as_mut_ptr());
                let here =
                    Plain::<T, B, I, X, O> { body: computes, arguments: &arguments, known: &known, kept, running };
                if P < B::LEVELS.1 && P < structure.levels {
                    reduce::<T, _, P>(&here, &structure, &mut state);
                } else if P >= B::LEVELS.0 && P == structure.levels {
                    // SAFETY: as above.
                    unsafe { here.write::<P>(&places, &large) };
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
pub unsafe fn forward<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
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
