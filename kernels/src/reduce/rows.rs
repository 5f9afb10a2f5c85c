//! Reductions of one contiguous row, for cell bodies.
//!
//! A reduction keeps 64 or 32 partial results, its *lanes*, in vector registers and adds the results of blocks
//! pairwise. This is faster and more accurate than adding in order, and returns the same bits at every
//! [level](crate::runtime::simd::Level).

use std::sync::OnceLock;

use crate::number::scalar::{Machine, Num, Real};
use crate::runtime::simd::clones;
use crate::runtime::stop::vec_for;
use crate::runtime::threads::parallel_for;

/// The minimum number of lanes.
const LANES: usize = 32;
/// The number of elements that are reduced in order (per lane) before results are combined pairwise.
const BLOCK: usize = 128 * LANES;

/// The number of lanes: [`LANES`], or twice as many if `combine` takes several instructions, because each lane waits
/// for its previous result.
#[derive(Clone, Copy)]
struct Lanes<const N: usize>;

clones! {
    /// `value(0) ∘ value(1) ∘ … ∘ value(n − 1)` for an associative `combine` whose neutral element is `identity`.
    <[U, V, C, const N: usize]> fn reduce(_lanes: Lanes<N>, n: usize, identity: U, value: V, combine: C) -> U
    where [U: Copy, V: Fn(usize) -> U, C: Fn(U, U) -> U] {
        if n <= BLOCK {
            return block::<U, N>(0, n, identity, &value, &combine);
        }
        // Entry k holds the result of 2ᵏ pairs of blocks, if bit k of the number of pairs is set.
        let mut stack = [identity; usize::BITS as usize];
        let mut height = 0;
        let pairs = n / (2 * BLOCK);
        for pair in 0..pairs {
            // Two blocks at once: memory delivers two streams faster than one.
            let [first, second] = lanes::<U, 2, N>(pair * 2 * BLOCK, BLOCK, identity, &value, &combine);
            let mut sum = combine(join(narrow(first, &combine), &combine), join(narrow(second, &combine), &combine));
            for _ in 0..pair.trailing_ones() {
                height -= 1;
                sum = combine(stack[height], sum);
            }
            stack[height] = sum;
            height += 1;
        }
        let start = pairs * 2 * BLOCK;
        let rest = n - start;
        let mut sum = block::<U, N>(start + rest / BLOCK * BLOCK, rest % BLOCK, identity, &value, &combine);
        if rest >= BLOCK {
            sum = combine(block::<U, N>(start, BLOCK, identity, &value, &combine), sum);
        }
        for part in stack[..height].iter().rev() {
            sum = combine(*part, sum);
        }
        sum
    }
}

/// Reduces one block of [`reduce`].
#[inline(always)]
fn block<U: Copy, const N: usize>(
    start: usize,
    n: usize,
    identity: U,
    value: impl Fn(usize) -> U,
    combine: impl Fn(U, U) -> U,
) -> U {
    let whole = n / N * N;
    let [many] = lanes::<U, 1, N>(start, whole, identity, &value, &combine);
    let mut lanes = narrow(many, &combine);
    if whole < n {
        // Separate from the lanes: an index that is known only at run time would force the lanes out of the registers.
        let mut last = [identity; LANES];
        let mut i = whole;
        while i + STEP <= n {
            for (l, lane) in last[..STEP].iter_mut().enumerate() {
                *lane = combine(*lane, value(start + i + l));
            }
            i += STEP;
        }
        for (l, lane) in last[STEP..][..n - i].iter_mut().enumerate() {
            *lane = value(start + i + l);
        }
        for (lane, last) in lanes.iter_mut().zip(last) {
            *lane = combine(*lane, last);
        }
    }
    join(lanes, combine)
}

/// The number of elements that are reduced at a time if too few remain for all lanes.
const STEP: usize = 8;

/// The lanes of `BLOCKS` consecutive blocks of `n` elements; `n` is a multiple of `N`.
#[inline(always)]
fn lanes<U: Copy, const BLOCKS: usize, const N: usize>(
    start: usize,
    n: usize,
    identity: U,
    value: impl Fn(usize) -> U,
    combine: impl Fn(U, U) -> U,
) -> [[U; N]; BLOCKS] {
    let mut lanes = [[identity; N]; BLOCKS];
    let mut i = start;
    while i < start + n {
        for (b, lanes) in lanes.iter_mut().enumerate() {
            for (l, lane) in lanes.iter_mut().enumerate() {
                *lane = combine(*lane, value(i + b * n + l));
            }
        }
        i += N;
    }
    lanes
}

/// Combines the lanes in groups whose indices are equal modulo [`LANES`].
#[inline(always)]
fn narrow<U: Copy, const N: usize>(lanes: [U; N], combine: impl Fn(U, U) -> U) -> [U; LANES] {
    if N > LANES {
        return halve(&lanes, combine);
    }
    let mut all = [lanes[0]; LANES];
    all.copy_from_slice(&lanes);
    all
}

/// Combines the lanes of a block into one result.
#[inline(always)]
fn join<U: Copy>(lanes: [U; LANES], combine: impl Fn(U, U) -> U) -> U {
    let lanes = halve::<U, 16>(&lanes, &combine);
    // From here on single lanes are combined. Without the `black_box` the compiler would also keep the lanes as scalars
    // in the loop.
    let lanes = std::hint::black_box(halve::<U, 8>(&lanes, &combine));
    let lanes = halve::<U, 4>(&lanes, &combine);
    let lanes = halve::<U, 2>(&lanes, &combine);
    combine(lanes[0], lanes[1])
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
    reduce(Lanes::<LANES>, row.len(), U::zero(), |i| f(unsafe { *row.get_unchecked(i) }), |a, b| a + b)
}

/// The minimum number of elements per thread.
const GRAIN: usize = 32 * BLOCK;

/// Reduces the row. A long row is split into parts, which are reduced on several threads.
#[inline]
fn of_parts<T: Machine>(row: &[T], reduction: impl Fn(&[T]) -> T + Sync) -> T {
    if row.len() <= 2 * GRAIN { reduction(row) } else { reduction(&parts(row, &reduction)) }
}

#[cold]
fn parts<T: Machine>(row: &[T], reduction: &(impl Fn(&[T]) -> T + Sync)) -> Vec<T> {
    let mut parts: Vec<OnceLock<T>> = vec_for(row.len().div_ceil(GRAIN));
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
    of_parts(row, |row| sum_map(row, |x| x))
}

/// The product of the row; 1 if it is empty.
#[inline]
pub fn prod<T: Machine + Num>(row: &[T]) -> T {
    // SAFETY: as above.
    of_parts(row, |row| reduce(Lanes::<LANES>, row.len(), T::one(), |i| unsafe { *row.get_unchecked(i) }, |a, b| a * b))
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
    reduce(Lanes::<LANES>, x.len(), T::zero(), product, |a, b| a + b)
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
    // SAFETY: as above. Both branches use the same number of registers.
    let of = |row: &[T]| unsafe {
        match size_of::<T>() <= 4 {
            true => reduce(Lanes::<{ 2 * LANES }>, row.len(), row[0], |i| *row.get_unchecked(i), &better),
            false => reduce(Lanes::<LANES>, row.len(), row[0], |i| *row.get_unchecked(i), &better),
        }
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

clones! {
    /// The index of the first `wanted` element. Each block is searched to its end, because a loop without an early exit
    /// vectorizes.
    <[T, F]> fn position_by(row: &[T], wanted: F) -> Option<usize> where [T: Machine, F: Fn(T) -> bool] {
        let found = |block: &[T]| block.iter().fold(false, |found, &x| found | wanted(x));
        let block = row.chunks(LANES * 8).position(found)?;
        let start = block * LANES * 8;
        row[start..].iter().position(|&x| wanted(x)).map(|i| start + i)
    }
}
