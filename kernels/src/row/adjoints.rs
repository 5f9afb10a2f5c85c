//! The adjoints of a row's reductions.

use super::Reduction;
use super::body::{Body, ComputedFloat, KEPT, MOST_REDUCTIONS};
use super::partials::{InRow, added, directions};
use super::place::put;
use super::structure::Structure;
use super::sweep::{LANES, Lanes, Sections, Sweep, each, sweep};

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

/// The sums that the first reductions require.
#[inline(always)]
fn sums_of(structure: &Structure, count: usize) -> [Option<Reduction>; SUMS] {
    let mut sums = [None; SUMS];
    each!(k < count => {
        let (kind, level) = structure.kinds[k];
        if level != usize::MAX {
            sums[place(k)] = Some(Reduction::Sum);
            if extreme(kind) {
                sums[winners(k)] = Some(Reduction::Sum);
            }
        }
        each!(m < count => if m > k && structure.kinds[m].1 != usize::MAX && structure.kinds[m].1 > level {
            sums[pair(m, k)] = Some(Reduction::Sum);
        });
    });
    sums
}

#[inline(always)]
fn extreme(reduction: Reduction) -> bool {
    matches!(reduction, Reduction::Max | Reduction::Min)
}

/// The sweep that accumulates the sums for the adjoints.
struct Dependencies<'a, R, const P: usize> {
    row: &'a R,
    structure: &'a Structure,
}

impl<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize, const P: usize, const N: usize>
    Sweep<T, N> for Dependencies<'_, InRow<'_, T, B, I, X, O>, P>
{
    const ACCUMULATED: usize = place(B::REDUCTIONS);

    #[inline(always)]
    unsafe fn element(&self, position: usize, lane: usize, values: &mut [Lanes<T>; N], kept: &mut [Lanes<T>; KEPT]) {
        directions!(B, B::REDUCTIONS, k => {
            // SAFETY: by contract.
            unsafe {
                let keeps = kept.as_mut_ptr().cast::<T>().add(lane);
                let partials = self.row.at::<P>(position, k, usize::MAX, keeps);
                if let Some(part) = self.row.pulled(&partials, position, true) {
                    *values[place(k)].get_unchecked_mut(lane) += part;
                }
                if extreme(partials.reductions.kinds[k].0) {
                    *values[winners(k)].get_unchecked_mut(lane) += self.row.share(&partials, k);
                }
                for m in k + 1..B::REDUCTIONS {
                    if let Some(tangent) = partials.tangents[m] {
                        *values[pair(m, k)].get_unchecked_mut(lane) += self.row.share(&partials, m) * tangent;
                    }
                }
            }
        });
    }

    #[inline(always)]
    unsafe fn end(&self, start: usize, len: usize, _values: &[Lanes<T>; N], kept: &[Lanes<T>; KEPT]) {
        // SAFETY: by contract.
        unsafe { self.structure.keep(P, self.row.kept, self.row.n, start, len, kept) };
    }
}

impl<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> InRow<'_, T, B, I, X, O> {
    /// The accumulated adjoint of a reduction, plus the part from outputs with one value per row. That part has no
    /// particular position.
    ///
    /// # Safety
    /// The arguments are those of a row; for an empty row, there is still a place for kept values.
    #[inline(always)]
    unsafe fn with_numbers<const P: usize>(&self, k: usize, sum: T) -> T {
        if !B::GIVES.contains(&false) {
            return sum;
        }
        let mut keeps = [[T::ZERO; LANES]; KEPT];
        // SAFETY: by contract.
        let part = unsafe { self.pulled(&self.at::<P>(0, k, usize::MAX, keeps.as_mut_ptr().cast()), 0, false) };
        part.map_or(sum, |part| sum + part)
    }
}

/// The share of an adjoint that each winner gets.
#[inline(always)]
fn shared<T: ComputedFloat>(adjoint: T, winners: T) -> T {
    T::select(winners.equal(T::ZERO), T::ZERO, adjoint / winners)
}

/// The sums for the adjoints, which are at most `N`.
///
/// # Safety
/// The arguments are those of a row.
#[inline(always)]
unsafe fn dependencies<
    T: ComputedFloat,
    B: Body<I, X, O>,
    const P: usize,
    const N: usize,
    const I: usize,
    const X: usize,
    const O: usize,
>(
    row: &InRow<'_, T, B, I, X, O>,
    structure: &Structure,
    kinds: &[Option<Reduction>; SUMS],
    sections: &mut Sections<T>,
) -> [T; SUMS] {
    let (mut few, mut sums) = ([None; N], [T::ZERO; SUMS]);
    few.copy_from_slice(&kinds[..N]);
    // SAFETY: by contract.
    let found = unsafe { sweep(&Dependencies::<_, P> { row, structure }, row.n, &few, sections) };
    sums[..N].copy_from_slice(&found);
    sums
}

/// The adjoints of all reductions, after all reductions are known.
///
/// # Safety
/// The arguments are those of a row.
#[inline(always)]
pub unsafe fn adjoints<
    T: ComputedFloat,
    B: Body<I, X, O>,
    const P: usize,
    const I: usize,
    const X: usize,
    const O: usize,
>(
    row: &InRow<'_, T, B, I, X, O>,
    structure: &Structure,
    sections: &mut Sections<T>,
) -> [T; MOST_REDUCTIONS] {
    let kinds = sums_of(structure, B::REDUCTIONS);
    // Few sums need little memory, which matters for short rows.
    let sums = match place(B::REDUCTIONS) {
        // SAFETY: by contract.
        0..=2 => unsafe { dependencies::<T, B, P, 2, I, X, O>(row, structure, &kinds, sections) },
        // SAFETY: as above.
        3..=5 => unsafe { dependencies::<T, B, P, 5, I, X, O>(row, structure, &kinds, sections) },
        // SAFETY: as above.
        6..=9 => unsafe { dependencies::<T, B, P, 9, I, X, O>(row, structure, &kinds, sections) },
        // SAFETY: as above.
        _ => unsafe { dependencies::<T, B, P, SUMS, I, X, O>(row, structure, &kinds, sections) },
    };
    let mut adjoints = [T::ZERO; MOST_REDUCTIONS];
    directions!(B, B::REDUCTIONS, k => {
        // SAFETY: as above.
        adjoints[k] = unsafe { row.with_numbers::<P>(k, sums[place(k)]) };
    });
    for k in (0..B::REDUCTIONS).rev() {
        for m in k + 1..B::REDUCTIONS {
            if kinds[pair(m, k)].is_some() {
                adjoints[k] += adjoints[m].chain(sums[pair(m, k)]);
            }
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
    T: ComputedFloat,
    B: Body<I, X, O>,
    const P: usize,
    const I: usize,
    const X: usize,
    const O: usize,
>(
    row: &InRow<'_, T, B, I, X, O>,
    structure: &Structure,
    sections: &mut Sections<T>,
) -> [T; MOST_REDUCTIONS] {
    let (n, mut adjoints) = (row.n, [T::ZERO; MOST_REDUCTIONS]);
    directions!(B, B::REDUCTIONS, backwards => {
        let k = B::REDUCTIONS - 1 - backwards;
        let kind = structure.kinds[k].0;
        let mut kinds = [None; 2];
        if !kind.is_running() {
            kinds = [Some(Reduction::Sum), extreme(kind).then_some(Reduction::Sum)];
        }
        let dependencies = OfOne::<_, T, P> { row, structure, adjoints: &adjoints, k, kind };
        // SAFETY: by contract.
        let sums: [T; 2] = unsafe { sweep(&dependencies, n, &kinds, sections) };
        if kind.is_running() {
            let other = if kind == Reduction::Cumsum { Reduction::ReverseCumsum } else { Reduction::Cumsum };
            // SAFETY: there is a row for each reduction.
            other.accumulate(unsafe { std::slice::from_raw_parts_mut(row.carried.add(k * n), n) });
        } else {
            // SAFETY: as above.
            let adjoint = unsafe { row.with_numbers::<P>(k, sums[0]) };
            adjoints[k] = if extreme(kind) { shared(adjoint, sums[1]) } else { adjoint };
        }
    });
    adjoints
}

/// The sweep for the adjoint of one reduction, after those of later reductions: its sum and the number of its winners,
/// or its row if it is running.
struct OfOne<'a, R, T, const P: usize> {
    row: &'a R,
    structure: &'a Structure,
    adjoints: &'a [T; MOST_REDUCTIONS],
    k: usize,
    kind: Reduction,
}

impl<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize, const P: usize> Sweep<T, 2>
    for OfOne<'_, InRow<'_, T, B, I, X, O>, T, P>
{
    const ACCUMULATED: usize = 2;

    #[inline(always)]
    unsafe fn element(&self, position: usize, lane: usize, values: &mut [Lanes<T>; 2], kept: &mut [Lanes<T>; KEPT]) {
        let k = self.k;
        // SAFETY: by contract.
        unsafe {
            let keeps = kept.as_mut_ptr().cast::<T>().add(lane);
            let partials = self.row.at::<P>(position, k, usize::MAX, keeps);
            let mut part = self.row.pulled(&partials, position, true);
            for m in k + 1..B::REDUCTIONS {
                if let Some(tangent) = partials.tangents[m] {
                    part = added(part, self.row.adjoint(&partials, m, position, self.adjoints) * tangent);
                }
            }
            let (sum, part) = (values[0].get_unchecked_mut(lane), part.unwrap_or(T::ZERO));
            *sum = if self.kind.is_running() { part } else { *sum + part };
            if extreme(self.kind) {
                *values[1].get_unchecked_mut(lane) += self.row.share(&partials, k);
            }
        }
    }

    #[inline(always)]
    unsafe fn end(&self, start: usize, len: usize, values: &[Lanes<T>; 2], kept: &[Lanes<T>; KEPT]) {
        let n = self.row.n;
        // SAFETY: by contract; there is a row for each reduction.
        unsafe {
            self.structure.keep(P, self.row.kept, n, start, len, kept);
            if self.kind.is_running() {
                put(&values[0], self.row.carried.add(self.k * n + start), len, false);
            }
        }
    }
}
