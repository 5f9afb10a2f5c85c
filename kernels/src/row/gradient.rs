//! The passes that compute the vector-Jacobian product of rows.
//!
//! Let `rₖ = redₖ over i of fₖ(xᵢ, r)`, where each depends only on earlier reductions, and `yᵢ = h(xᵢ, r)`. The
//! adjoints of the reductions are, from the last to the first,
//!
//! `r̄ₖ = Σᵢ ȳᵢ ∂h/∂rₖ + Σ_{m>k} r̄ₘ Σᵢ redₘ′(i) ∂fₘ/∂rₖ`,
//!
//! and those of the inputs `x̄ᵢ = ȳᵢ ∂h/∂xᵢ + Σₖ r̄ₖ redₖ′(i) ∂fₖ/∂xᵢ`, where `red′` is 1 for a sum, the share of a
//! winner for max and min, and the product of the other elements for a product. One pass accumulates all sums over `i`
//! of the first formula. Every partial derivative comes from the body at dual numbers, in one direction at a time.

use super::Reduction;
use super::adjoints::{adjoints, adjoints_in_turn};
use super::body::{Body, ComputedFloat, KEPT, MOST_REDUCTIONS, RowError, Rows};
use super::operands::{Operands, positions, zeros_for};
use super::partials::{InRow, directions};
use super::pass::{State, passes, reduce};
use super::place::{get, put};
use super::structure::Structure;
use super::sweep::{LANES, Lanes, Sections, Sweep, sweep};
use crate::memory::stream::fence;
use crate::runtime::simd::clones;

/// The additional operands of the gradient of a row body.
#[derive(Clone, Copy, Debug)]
pub struct Cotangents<T, const I: usize, const O: usize> {
    /// The cotangents of the outputs.
    pub outputs: [Rows<*const T>; O],
    /// The cotangents of the inputs, which are written; null if not requested.
    pub inputs: [Rows<*mut T>; I],
    /// True for each input whose cotangent all rows share. The contributions of the rows are added.
    pub shared: [bool; I],
}

/// Writes the cotangent of input `q`. Rows that share a cotangent add to it.
///
/// # Safety
/// The arguments are those of a row, and `place` is the input's cotangent.
#[inline(always)]
unsafe fn give<T: ComputedFloat, B: Body<I, X, O>, const P: usize, const I: usize, const X: usize, const O: usize>(
    cotangent: &Cotangent<'_, InRow<'_, T, B, I, X, O>, T, P>,
    sections: &mut Sections<T>,
) {
    let (row, q, n) = (cotangent.row, cotangent.q, cotangent.row.n);
    if B::ALONG[q] {
        // SAFETY: by contract.
        unsafe { sweep(cotangent, n, &[None], sections) };
        return;
    }
    let mut keeps = [[T::ZERO; LANES]; KEPT];
    // SAFETY: by contract.
    unsafe {
        let [sum] = sweep(cotangent, n, &[Some(Reduction::Sum)], sections);
        let partials = row.at::<P>(0, usize::MAX, q, keeps.as_mut_ptr().cast());
        let here = row.pulled(&partials, 0, false).map_or(sum, |part| sum + part);
        let place = &mut *cotangent.place;
        *place = if cotangent.is_shared { *place + here } else { here };
    }
}

/// The sweep that computes the cotangent of one input.
struct Cotangent<'a, R, T, const P: usize> {
    row: &'a R,
    adjoints: &'a [T; MOST_REDUCTIONS],
    q: usize,
    place: *mut T,
    is_shared: bool,
    is_large: bool,
    /// True if no later sweep over the row follows.
    is_last: bool,
}

impl<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize, const P: usize> Sweep<T, 1>
    for Cotangent<'_, InRow<'_, T, B, I, X, O>, T, P>
{
    const ACCUMULATED: usize = 1;

    #[inline(always)]
    fn begin(&self, start: usize, len: usize) {
        if self.is_last {
            self.row.inputs.prefetch_next(&B::ALONG, start, len);
            self.row.cotangents.prefetch_next(&B::GIVES, start, len);
        }
    }

    #[inline(always)]
    unsafe fn element(&self, position: usize, lane: usize, values: &mut [Lanes<T>; 1], kept: &mut [Lanes<T>; KEPT]) {
        // SAFETY: by contract.
        unsafe {
            let keeps = kept.as_mut_ptr().cast::<T>().add(lane);
            let here = self.row.pull::<P>(position, self.q, self.adjoints, keeps);
            let value = values[0].get_unchecked_mut(lane);
            *value = if B::ALONG[self.q] { here } else { *value + here };
        }
    }

    #[inline(always)]
    unsafe fn end(&self, start: usize, len: usize, values: &[Lanes<T>; 1], _kept: &[Lanes<T>; KEPT]) {
        if !B::ALONG[self.q] {
            return;
        }
        let (place, mut block) = (self.place.wrapping_add(start), values[0]);
        // SAFETY: by contract.
        unsafe {
            if self.is_shared {
                let sum = get(place, len);
                for lane in 0..LANES {
                    block[lane] += sum[lane];
                }
            }
            put(&block, place, len, self.is_large);
        }
    }
}

clones! {
    <[T, B, const I: usize, const X: usize, const O: usize]>
    fn run(
        computes: &B,
        n: usize,
        rows: usize,
        cotangents: &Cotangents<T, I, O>,
        inputs: &[Rows<*const T>; I],
        at: &[Rows<*const i64>; X],
    ) -> Result<(), RowError>
    where [T: ComputedFloat, B: Body<I, X, O>] if [T::FOR_EACH_LEVEL] {
        let (structure, checked) = Structure::of_dual::<T, B, I, X, O>(computes);
        checked?;
        let mut state = State::new(&structure, n);
        let mut carried = structure.rows_of_sums::<T>(n);
        let zeros = zeros_for(n, inputs);
        let (mut large, mut last) = ([false; I], 0);
        for q in 0..I {
            large[q] = cotangents.inputs[q].is_large && !cotangents.shared[q];
            if !cotangents.inputs[q].data.is_null() {
                last = q;
            }
        }
        for row in 0..rows {
            // SAFETY: these rows are valid by the contract of `vjp`.
            let (at, inputs, given) = unsafe {
                let inputs = Operands::of(n, row, inputs, &B::ALONG, &zeros);
                let given = Operands::of(n, row, &cotangents.outputs, &B::GIVES, &zeros);
                (positions(n, row, at)?, inputs, given)
            };
            passes!(B, P => {
                let (known, kept, running) = (state.known, state.kept.as_mut_ptr(), state.running.as_mut_ptr());
                let carried = carried.as_mut_ptr();
                let here = InRow {
                    body: computes, n, inputs, at, cotangents: given, known: &known, kept, running, carried,
                };
                if P < B::LEVELS.1 && P < structure.levels {
                    reduce::<T, _, P>(&here, &structure, &mut state.known, &mut state.sections);
                } else if P >= B::LEVELS.0 && P == structure.levels {
                    // SAFETY: as above; in the last pass all kept values are known.
                    unsafe {
                        let adjoints = match B::RUNS {
                            true => adjoints_in_turn::<T, B, P, I, X, O>(&here, &structure, &mut state.sections),
                            false => adjoints::<T, B, P, I, X, O>(&here, &structure, &mut state.sections),
                        };
                        // The pass for the adjoints completed the kept values, if there is any reduction.
                        directions!(B, I, q => {
                            let to = cotangents.inputs[q];
                            let (place, is_shared, is_last) = (to.row(row), cotangents.shared[q], q == last);
                            if to.data.is_null() {
                            } else if B::LEVELS.1 > 0 && structure.reductions > 0 {
                                let cotangent = Cotangent::<_, T, { P + 1 }> {
                                    row: &here, adjoints: &adjoints, q, place, is_shared, is_large: large[q], is_last,
                                };
                                give(&cotangent, &mut state.sections);
                            } else if B::LEVELS.0 == 0 {
                                let cotangent = Cotangent::<_, T, P> {
                                    row: &here, adjoints: &adjoints, q, place, is_shared, is_large: large[q], is_last,
                                };
                                give(&cotangent, &mut state.sections);
                            }
                        });
                    }
                }
            });
        }
        if large.contains(&true) {
            fence();
        }
        Ok(())
    }
}

/// Computes the vector-Jacobian products of `rows` rows of `n` elements.
///
/// # Safety
/// As for [`forward`](super::forward()); the outputs are the inputs' cotangents.
pub unsafe fn vjp<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
    body: &B,
    n: usize,
    rows: usize,
    cotangents: &Cotangents<T, I, O>,
    inputs: &[Rows<*const T>; I],
    at: &[Rows<*const i64>; X],
) -> Result<(), RowError> {
    const { assert!(I <= MOST_REDUCTIONS) };
    run(body, n, rows, cotangents, inputs, at)
}
