//! Reductions of one contiguous row, for cell bodies.
//!
//! A reduction keeps 64 partial results, its *lanes*, in vector registers. This is faster and more accurate than adding
//! in order. The result has the same bits at every [level](crate::runtime::simd::Level), and is that of a reduction in a
//! [row body](crate::row).

use std::sync::OnceLock;

use crate::number::scalar::{Machine, Num, Real};
use crate::runtime::simd::clones;
use crate::runtime::stop::vec_for;
use crate::runtime::threads::parallel_for;

/// The number of lanes. Lane `l` reduces the elements `l`, `LANES + l`, …
pub(crate) const LANES: usize = 64;
/// The number of elements per lane that are reduced in order in registers, before the result is added to the lane.
pub(crate) const RUN: usize = 8;
/// The number of elements, in runs that are reduced in order, before results are combined pairwise.
pub(crate) const SECTION: usize = 32 * RUN * LANES;

/// The number of lanes that are in registers at once.
const HALF: usize = LANES / 2;

clones! {
    /// `value(0) ∘ value(1) ∘ … ∘ value(n − 1)` for an associative `combine` whose neutral element is `identity`.
    <[U, V, C]> fn reduce(n: usize, identity: U, value: V, combine: C) -> U
    where [U: Copy, V: Fn(usize) -> U, C: Fn(U, U) -> U] {
        if n <= FEW {
            return few(n, identity, value, combine);
        }
        // Entry k holds the result of 2ᵏ sections, if bit k of the number of sections is set.
        let mut stack = [identity; usize::BITS as usize];
        let (mut start, mut height) = (0, 0);
        loop {
            let len = SECTION.min(n - start);
            let mut sum = section(start, len, identity, &value, &combine);
            let is_last = start + len == n;
            let joined = if is_last { height } else { (start / SECTION).trailing_ones() as usize };
            for _ in 0..joined {
                height -= 1;
                sum = combine(stack[height], sum);
            }
            if is_last {
                return sum;
            }
            stack[height] = sum;
            height += 1;
            start += len;
        }
    }
}

/// The most elements that are reduced in lanes of their own number. The other lanes are neutral.
pub(crate) const FEW: usize = 4;

/// Like [`reduce`], for at most [`FEW`] elements.
#[inline(always)]
pub(crate) fn few<U: Copy>(n: usize, identity: U, value: impl Fn(usize) -> U, combine: impl Fn(U, U) -> U) -> U {
    #[inline(always)]
    fn of<U: Copy, const N: usize>(
        n: usize,
        identity: U,
        value: impl Fn(usize) -> U,
        combine: impl Fn(U, U) -> U,
    ) -> U {
        let mut lanes = [identity; N];
        for (l, lane) in lanes.iter_mut().enumerate() {
            if l < n {
                *lane = combine(*lane, value(l));
            }
        }
        let mut half = N / 2;
        while half > 0 {
            (0..half).for_each(|l| lanes[l] = combine(lanes[l], lanes[l + half]));
            half /= 2;
        }
        lanes[0]
    }
    match n {
        0 | 1 => of::<U, 1>(n, identity, value, combine),
        2 => of::<U, 2>(n, identity, value, combine),
        _ => of::<U, FEW>(n, identity, value, combine),
    }
}

/// Reduces one section of [`reduce`].
#[inline(always)]
fn section<U: Copy>(start: usize, n: usize, identity: U, value: impl Fn(usize) -> U, combine: impl Fn(U, U) -> U) -> U {
    let (mut at, end) = (start, start + n);
    let mut totals = [[identity; HALF]; 2];
    while at + LANES <= end {
        let blocks = ((end - at) / LANES).min(RUN);
        for (half, total) in totals.iter_mut().enumerate() {
            *total = both(*total, run(at + half * HALF, blocks, identity, &value, &combine), &combine);
        }
        at += blocks * LANES;
    }
    for total in totals.iter_mut().take((end - at).div_ceil(HALF)) {
        *total = both(*total, rest(at, HALF.min(end - at), identity, &value), &combine);
        at += HALF.min(end - at);
    }
    join(both(totals[0], totals[1], &combine), combine)
}

/// Half of the lanes over a run of blocks.
#[inline(always)]
fn run<U: Copy>(
    start: usize,
    blocks: usize,
    identity: U,
    value: impl Fn(usize) -> U,
    combine: impl Fn(U, U) -> U,
) -> [U; HALF] {
    let mut lanes = [identity; HALF];
    for block in 0..blocks {
        for (l, lane) in lanes.iter_mut().enumerate() {
            *lane = combine(*lane, value(start + block * LANES + l));
        }
    }
    lanes
}

/// The number of lanes that are read at a time if too few elements remain for all.
const STEP: usize = 8;

/// Half of the lanes for at most as many elements. The other lanes are neutral. An index that is known only at run time would
/// force the lanes out of the registers.
#[inline(always)]
fn rest<U: Copy>(start: usize, n: usize, identity: U, value: impl Fn(usize) -> U) -> [U; HALF] {
    let mut last = [identity; STEP];
    for (l, lane) in last.iter_mut().enumerate() {
        if l < n % STEP {
            *lane = value(start + n / STEP * STEP + l);
        }
    }
    let mut lanes = [identity; HALF];
    for (step, lanes) in lanes.chunks_exact_mut(STEP).enumerate() {
        let from = step * STEP;
        if from + STEP <= n {
            for (l, lane) in lanes.iter_mut().enumerate() {
                *lane = value(start + from + l);
            }
        } else if from < n {
            lanes.copy_from_slice(&last);
        }
    }
    lanes
}

/// Combines the lanes of half a block into one result.
#[inline(always)]
fn join<U: Copy>(lanes: [U; HALF], combine: impl Fn(U, U) -> U) -> U {
    let lanes = halve::<U, 16>(&lanes, &combine);
    // From here on single lanes are combined. Without the `black_box` the compiler would also keep the lanes as scalars
    // in the loop.
    let lanes = std::hint::black_box(halve::<U, 8>(&lanes, &combine));
    let lanes = halve::<U, 4>(&lanes, &combine);
    let lanes = halve::<U, 2>(&lanes, &combine);
    combine(lanes[0], lanes[1])
}

/// Combines each lane with another.
#[inline(always)]
fn both<U: Copy, const N: usize>(mut lanes: [U; N], others: [U; N], combine: impl Fn(U, U) -> U) -> [U; N] {
    for (lane, other) in lanes.iter_mut().zip(others) {
        *lane = combine(*lane, other);
    }
    lanes
}

/// Combines the lanes of one half with those of the other.
#[inline(always)]
fn halve<U: Copy, const HALF: usize>(lanes: &[U], combine: impl Fn(U, U) -> U) -> [U; HALF] {
    let mut half = [lanes[0]; HALF];
    for (l, lane) in half.iter_mut().enumerate() {
        *lane = combine(lanes[l], lanes[l + HALF]);
    }
    half
}

/// The sum of `f(x)` over the row.
#[inline]
pub fn sum_map<T: Machine, U: Machine + Num>(row: &[T], f: impl Fn(T) -> U) -> U {
    // SAFETY: `reduce` passes indices below n.
    reduce(row.len(), U::zero(), |i| f(unsafe { *row.get_unchecked(i) }), |a, b| a + b)
}

clones! {
    /// `start ∘ x₀ ∘ x₁ ∘ …` by `step`. The compiler vectorizes it if the order does not matter, as for integers.
    <[T, A, S]> fn in_order(row: &[T], start: A, step: S) -> A where [T: Machine, A: Copy, S: Fn(A, T) -> A] {
        row.iter().fold(start, |result, x| step(result, *x))
    }
}

/// `start ∘ x₀ ∘ x₁ ∘ …` by `step`; `merge` joins the results for parts, of which `start` is the neutral element.
#[inline]
pub fn fold<T: Machine, A: Copy + Send + Sync>(
    row: &[T],
    start: A,
    step: impl Fn(A, T) -> A + Sync,
    merge: impl Fn(A, A) -> A + Sync,
) -> A {
    let part = |row: &[T]| match T::IS_EXACT {
        true => in_order(row, start, &step),
        // SAFETY: as above.
        false => reduce(row.len(), start, |i| step(start, unsafe { *row.get_unchecked(i) }), &merge),
    };
    if row.len() <= 2 * GRAIN { part(row) } else { parts(row, &part).into_iter().fold(start, merge) }
}

/// The number of elements that are `wanted`.
#[inline]
pub fn count<T: Machine>(row: &[T], wanted: impl Fn(T) -> bool + Sync) -> usize {
    /// Short enough to count in 32 bits.
    const SHORT: usize = 1 << 16;
    let short = |row: &[T]| in_order(row, 0u32, |n, x| n + u32::from(wanted(x))) as usize;
    let part = |row: &[T]| row.chunks(SHORT).map(short).sum::<usize>();
    if row.len() <= 2 * GRAIN { part(row) } else { parts(row, &part).into_iter().sum() }
}

/// The minimum number of elements per thread.
const GRAIN: usize = 8 * SECTION;

/// Reduces the row. A long row is split into parts, which are reduced on several threads.
#[inline]
fn of_parts<T: Machine>(row: &[T], reduction: impl Fn(&[T]) -> T + Sync) -> T {
    if row.len() <= 2 * GRAIN { reduction(row) } else { reduction(&parts(row, &reduction)) }
}

#[cold]
fn parts<T: Machine, A: Send + Sync>(row: &[T], reduction: &(impl Fn(&[T]) -> A + Sync)) -> Vec<A> {
    let mut parts: Vec<OnceLock<A>> = vec_for(row.len().div_ceil(GRAIN));
    parts.extend(row.chunks(GRAIN).map(|_| OnceLock::new()));
    parallel_for(parts.len(), 1, |range| {
        for k in range {
            let _ = parts[k].set(reduction(&row[k * GRAIN..row.len().min((k + 1) * GRAIN)]));
        }
    });
    parts.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// The sum of the row; 0 if it is empty.
#[inline]
pub fn sum<T: Machine + Num>(row: &[T]) -> T {
    of_parts(row, |row| match T::IS_EXACT {
        true => in_order(row, T::zero(), |a, b| a + b),
        false => sum_map(row, |x| x),
    })
}

/// The product of the row; 1 if it is empty.
#[inline]
pub fn prod<T: Machine + Num>(row: &[T]) -> T {
    of_parts(row, |row| match T::IS_EXACT {
        true => in_order(row, T::one(), |a, b| a * b),
        // SAFETY: as above.
        false => reduce(row.len(), T::one(), |i| unsafe { *row.get_unchecked(i) }, |a, b| a * b),
    })
}

/// The sum of `xᵢ yᵢ`, without conjugation.
///
/// # Panics
/// If the lengths differ.
#[inline]
pub fn dot<T: Machine + Num>(x: &[T], y: &[T]) -> T {
    assert_eq!(x.len(), y.len(), "dot of rows of different lengths");
    // SAFETY: as above, for both rows.
    let product = |i| unsafe { *x.get_unchecked(i) * *y.get_unchecked(i) };
    reduce(x.len(), T::zero(), product, |a, b| a + b)
}

/// The largest element, or NaN if the row contains one; `None` if the row is empty.
#[inline]
pub fn max<T: Machine + Real>(row: &[T]) -> Option<T> {
    extreme(row, T::maximum)
}

/// The smallest element, or NaN if the row contains one; `None` if the row is empty.
#[inline]
pub fn min<T: Machine + Real>(row: &[T]) -> Option<T> {
    extreme(row, T::minimum)
}

#[inline]
fn extreme<T: Machine + Real>(row: &[T], better: impl Fn(T, T) -> T + Sync) -> Option<T> {
    let of = |row: &[T]| match T::IS_EXACT {
        true => in_order(row, row[0], &better),
        // SAFETY: as above.
        false => reduce(row.len(), row[0], |i| unsafe { *row.get_unchecked(i) }, &better),
    };
    if row.is_empty() { None } else { Some(of_parts(row, of)) }
}

/// The index of the first NaN or, without any, of the first largest element; `None` if the row is empty.
#[inline]
pub fn argmax<T: Machine + Real>(row: &[T]) -> Option<usize> {
    max(row).and_then(|extremum| position(row, extremum))
}

/// The index of the first NaN or, without any, of the first smallest element; `None` if the row is empty.
#[inline]
pub fn argmin<T: Machine + Real>(row: &[T]) -> Option<usize> {
    min(row).and_then(|extremum| position(row, extremum))
}

/// Uses two passes: finding the extremum vectorizes, but carrying its index along doesn't.
fn position<T: Machine + Real>(row: &[T], extremum: T) -> Option<usize> {
    match extremum.isnan() {
        true => position_by(row, |x| x.isnan()),
        false => position_by(row, |x| x == extremum),
    }
}

/// Whether any element is `wanted`.
#[inline]
pub fn any<T: Machine>(row: &[T], wanted: impl Fn(T) -> bool) -> bool {
    position_by(row, wanted).is_some()
}

/// The number of elements that are searched at a time.
const BLOCK: usize = 256;

clones! {
    /// The index of the first `wanted` element. Each block is searched to its end, because a loop without an early exit
    /// vectorizes.
    <[T, F]> fn position_by(row: &[T], wanted: F) -> Option<usize> where [T: Machine, F: Fn(T) -> bool] {
        let found = |block: &[T]| block.iter().fold(false, |found, &x| found | wanted(x));
        let block = row.chunks(BLOCK).position(found)?;
        let start = block * BLOCK;
        row[start..].iter().position(|&x| wanted(x)).map(|i| start + i)
    }
}
