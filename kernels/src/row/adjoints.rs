//! The adjoints of a row's reductions.

use super::Reduction;
use super::accumulators::{Accumulators, LANES};
use super::body::{Body, Computed, MOST_REDUCTIONS};
use super::partials::{InRow, added, directions};
use super::pass::{blocks, put};
use super::structure::Structure;

/// The number of sums that the adjoints need. Each reduction `m` in turn has: `Σ ȳ ∂h/∂rₘ`, the number of its winners,
/// and `Σ red′ₘ ∂fₘ/∂rₖ` for each `k < m`.
pub const SUMS: usize = place(MOST_REDUCTIONS);

/// The index of the first sum of a reduction, which is the number of sums of the reductions before it.
const fn place(m: usize) -> usize {
    2 * m + m * m.saturating_sub(1) / 2
}

/// The index of the number of winners of a reduction.
const fn winners(m: usize) -> usize {
    place(m) + 1
}

/// The index of the sum for a pair `k < m`.
const fn pair(m: usize, k: usize) -> usize {
    place(m) + 2 + k
}

/// The sums that a structure requires.
pub fn sums(structure: &Structure) -> [Option<Reduction>; SUMS] {
    let mut sums = [None; SUMS];
    for k in 0..structure.reductions {
        sums[place(k)] = Some(Reduction::Sum);
        sums[winners(k)] = extreme(structure.kinds[k].0).then_some(Reduction::Sum);
        for m in k + 1..structure.reductions {
            sums[pair(m, k)] = (structure.kinds[m].1 > structure.kinds[k].1).then_some(Reduction::Sum);
        }
    }
    sums
}

#[inline(always)]
fn extreme(reduction: Reduction) -> bool {
    matches!(reduction, Reduction::Max | Reduction::Min)
}

impl<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> InRow<'_, T, B, I, X, O> {
    /// Accumulates the sums for the adjoints over a block.
    ///
    /// # Safety
    /// The positions are in the row.
    #[inline(always)]
    unsafe fn adjoin<const P: usize>(&self, start: usize, len: usize, lanes: &mut [[T; LANES]; SUMS]) {
        for j in 0..len {
            directions!(B, B::REDUCTIONS, k => {
                // SAFETY: by contract; `len` is at most LANES, which the compiler can't see.
                unsafe {
                    let partials = self.at::<P>(start + j, k, usize::MAX);
                    if let Some(part) = self.pulled(&partials, start + j, true) {
                        *lanes[place(k)].get_unchecked_mut(j) += part;
                    }
                    if extreme(partials.reductions.kinds[k].0) {
                        *lanes[winners(k)].get_unchecked_mut(j) += self.share(&partials, k);
                    }
                    for m in k + 1..B::REDUCTIONS {
                        if let Some(tangent) = partials.tangents[m] {
                            *lanes[pair(m, k)].get_unchecked_mut(j) += self.share(&partials, m) * tangent;
                        }
                    }
                }
            });
        }
    }

    /// The accumulated adjoint of a reduction, plus the part from outputs with one value per row. That part has no
    /// particular position.
    ///
    /// # Safety
    /// The arguments are those of a row; for an empty row, there is still a place for kept values.
    #[inline(always)]
    unsafe fn with_numbers<const P: usize>(&self, k: usize, sum: T) -> T {
        // SAFETY: by contract.
        let part = unsafe { self.pulled(&self.at::<P>(0, k, usize::MAX), 0, false) };
        part.map_or(sum, |part| sum + part)
    }
}

/// The share of an adjoint that each winner gets.
#[inline(always)]
fn shared<T: Computed>(adjoint: T, winners: T) -> T {
    T::select(winners.equal(T::ZERO), T::ZERO, adjoint / winners)
}

/// The adjoints of all reductions, after all reductions are known.
///
/// # Safety
/// The arguments are those of a row.
#[inline(always)]
pub unsafe fn adjoints<
    T: Computed,
    B: Body<I, X, O>,
    const P: usize,
    const I: usize,
    const X: usize,
    const O: usize,
>(
    row: &InRow<'_, T, B, I, X, O>,
    structure: &Structure,
    kinds: &[Option<Reduction>; SUMS],
    accumulators: &mut Accumulators<T, SUMS>,
) -> [T; MOST_REDUCTIONS] {
    let (n, reductions) = (row.arguments.n, structure.reductions);
    // A constant length, so that loops over the sums are unrolled.
    let kinds = &kinds[..const { place(B::REDUCTIONS) }];
    accumulators.begin(kinds, n);
    blocks!(n, start, len => {
        // SAFETY: by contract.
        unsafe { row.adjoin::<P>(start, len, &mut accumulators.lanes) };
        accumulators.block(kinds);
    });
    let sums = accumulators.finish(kinds);
    let mut adjoints = [T::ZERO; MOST_REDUCTIONS];
    directions!(B, B::REDUCTIONS, k => {
        // SAFETY: as above.
        adjoints[k] = unsafe { row.with_numbers::<P>(k, sums[place(k)]) };
    });
    for k in (0..reductions).rev() {
        for m in k + 1..reductions {
            adjoints[k] += adjoints[m].chain(sums[pair(m, k)]);
        }
        if extreme(structure.kinds[k].0) {
            adjoints[k] = shared(adjoints[k], sums[winners(k)]);
        }
    }
    adjoints
}

/// Like [`adjoints`], if some of the reductions are running. Computes them from the last to the first, each in its own
/// pass: the adjoint of the argument of a running sum is a running sum in the opposite direction.
///
/// # Safety
/// As for [`adjoints`].
#[inline(always)]
pub unsafe fn adjoints_in_turn<
    T: Computed,
    B: Body<I, X, O>,
    const P: usize,
    const I: usize,
    const X: usize,
    const O: usize,
>(
    row: &InRow<'_, T, B, I, X, O>,
    structure: &Structure,
    accumulators: &mut Accumulators<T, SUMS>,
) -> [T; MOST_REDUCTIONS] {
    let (n, mut adjoints) = (row.arguments.n, [T::ZERO; MOST_REDUCTIONS]);
    directions!(B, B::REDUCTIONS, backwards => {
        let k = B::REDUCTIONS - 1 - backwards;
        let kind = structure.kinds[k].0;
        let mut kinds = [None; SUMS];
        if !kind.is_running() {
            (kinds[0], kinds[1]) = (Some(Reduction::Sum), extreme(kind).then_some(Reduction::Sum));
        }
        accumulators.begin(&kinds, n);
        blocks!(n, start, len => {
            for j in 0..len {
                // SAFETY: by contract; `len` is at most LANES.
                unsafe {
                    let partials = row.at::<P>(start + j, k, usize::MAX);
                    let mut part = row.pulled(&partials, start + j, true);
                    for m in k + 1..B::REDUCTIONS {
                        if let Some(tangent) = partials.tangents[m] {
                            part = added(part, row.adjoint(&partials, m, start + j, &adjoints) * tangent);
                        }
                    }
                    let (lane, part) = (accumulators.lanes[0].get_unchecked_mut(j), part.unwrap_or(T::ZERO));
                    *lane = if kind.is_running() { part } else { *lane + part };
                    if extreme(kind) {
                        *accumulators.lanes[1].get_unchecked_mut(j) += row.share(&partials, k);
                    }
                }
            }
            if kind.is_running() {
                // SAFETY: there is a row for each reduction.
                unsafe { put(&accumulators.lanes[0], row.carried.add(k * n + start), len, false) };
            }
            accumulators.block(&kinds);
        });
        if kind.is_running() {
            let other = if kind == Reduction::Cumsum { Reduction::ReverseCumsum } else { Reduction::Cumsum };
            // SAFETY: as above.
            other.accumulate(unsafe { std::slice::from_raw_parts_mut(row.carried.add(k * n), n) });
        } else {
            let sums = accumulators.finish(&kinds);
            // SAFETY: as above.
            let adjoint = unsafe { row.with_numbers::<P>(k, sums[0]) };
            adjoints[k] = if extreme(kind) { shared(adjoint, sums[1]) } else { adjoint };
        }
    });
    adjoints
}
