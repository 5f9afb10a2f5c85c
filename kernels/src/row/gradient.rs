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
use super::accumulators::{Accumulators, LANES};
use super::adjoints::{adjoints, adjoints_in_turn, sums};
use super::body::{Body, Computed, MOST_REDUCTIONS, RowError, Rows};
use super::partials::{InRow, directions};
use super::pass::{Arguments, State, blocks, passes, prefetch_next, put, reduce, zeros_for};
use super::structure::Structure;
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

/// Writes the cotangents of the inputs. It works block by block, so that the compiler knows that no store changes what
/// is read.
///
/// # Safety
/// The arguments are those of a row, and `places` are the inputs' cotangents, or null.
#[inline(always)]
unsafe fn give<T: Computed, B: Body<I, X, O>, const P: usize, const I: usize, const X: usize, const O: usize>(
    row: &InRow<'_, T, B, I, X, O>,
    adjoints: &[T; MOST_REDUCTIONS],
    places: &[*mut T; I],
    shared: &[bool; I],
    large: &[bool; I],
    accumulators: &mut Accumulators<T, I>,
) {
    let (n, kinds) = (row.arguments.n, B::ALONG.map(|along| (!along).then_some(Reduction::Sum)));
    accumulators.begin(&kinds, n);
    blocks!(n, start, len => {
        row.arguments.prefetch_next(&B::ALONG, start, len);
        prefetch_next(&B::GIVES, row.cotangents, row.next, start, len);
        for j in 0..len {
            directions!(B, I, q => {
                // SAFETY: by contract.
                let here = unsafe { row.pull::<P>(start + j, q, adjoints) };
                // SAFETY: `len` is at most LANES.
                let lane = unsafe { accumulators.lanes[q].get_unchecked_mut(j) };
                *lane = if B::ALONG[q] { here } else { *lane + here };
            });
        }
        for q in 0..I {
            if B::ALONG[q] && !places[q].is_null() {
                let place = places[q].wrapping_add(start);
                if shared[q] {
                    for j in 0..len {
                        // SAFETY: by contract.
                        unsafe { *accumulators.lanes[q].get_unchecked_mut(j) += *place.add(j) };
                    }
                }
                // SAFETY: by contract.
                unsafe { put(&accumulators.lanes[q], place, len, large[q]) };
            }
        }
        accumulators.block(&kinds);
    });
    let sums = accumulators.finish(&kinds);
    directions!(B, I, q => {
        if !B::ALONG[q] && !places[q].is_null() {
            // SAFETY: as above.
            let (partials, place) = unsafe { (row.at::<P>(0, usize::MAX, q), &mut *places[q]) };
            // SAFETY: as above.
            let here = unsafe { row.pulled(&partials, 0, false) }.map_or(sums[q], |part| sums[q] + part);
            *place = if shared[q] { *place + here } else { here };
        }
    });
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
    where [T: Computed, B: Body<I, X, O>] if [T::VECTORIZE] {
        let structure = Structure::of_dual::<T, B, I, X, O>(computes)?;
        let (mut state, kinds, mut accumulators) = (State::new(&structure, n), sums(&structure), Accumulators::new());
        let (mut given_back, mut carried) = (Accumulators::new(), structure.rows_of_sums::<T>(n));
        let zeros = zeros_for(n, inputs);
        let mut large = [false; I];
        for q in 0..I {
            large[q] = cotangents.inputs[q].is_large && !cotangents.shared[q];
        }
        for row in 0..rows {
            // SAFETY: these rows are valid by the contract of `vjp`.
            let arguments = unsafe { Arguments::of(n, row, inputs, at, &B::ALONG, &zeros)? };
            let (mut given, mut next) = ([std::ptr::null(); O], [std::ptr::null(); O]);
            for k in 0..O {
                given[k] = cotangents.outputs[k].row(row);
                next[k] = cotangents.outputs[k].row(row + 1);
            }
            passes!(B, P => {
                let (known, kept, running) = (state.known, state.kept.as_mut_ptr(), state.running.as_mut_ptr());
                let carried = carried.as_mut_ptr();
                let here = InRow {
                    body: computes, arguments: &arguments, cotangents: &given, next: &next, known: &known, kept,
                    running, carried,
                };
                if P < B::LEVELS.1 && P < structure.levels {
                    reduce::<T, _, P>(&here, &structure, &mut state);
                } else if P >= B::LEVELS.0 && P == structure.levels {
                    // SAFETY: as above; in the last pass all kept values are known.
                    unsafe {
                        let adjoints = match B::RUNS {
                            true => adjoints_in_turn::<T, B, P, I, X, O>(&here, &structure, &mut accumulators),
                            false => adjoints::<T, B, P, I, X, O>(&here, &structure, &kinds, &mut accumulators),
                        };
                        let mut places = [std::ptr::null_mut(); I];
                        for q in 0..I {
                            if !cotangents.inputs[q].data.is_null() {
                                places[q] = cotangents.inputs[q].row(row);
                            }
                        }
                        // The pass for the adjoints completed the kept values, if there is any reduction.
                        if B::LEVELS.1 > 0 && structure.reductions > 0 {
                            give::<T, B, { P + 1 }, I, X, O>(&here, &adjoints, &places, &cotangents.shared, &large, &mut given_back);
                        } else if B::LEVELS.0 == 0 {
                            give::<T, B, P, I, X, O>(&here, &adjoints, &places, &cotangents.shared, &large, &mut given_back);
                        }
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
pub unsafe fn vjp<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
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
