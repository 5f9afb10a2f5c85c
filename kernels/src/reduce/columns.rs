//! Reductions along the columns of a table: whole rows are combined, in memory order.

use crate::memory::copy::Pointer;
use crate::number::scalar::{Machine, Num, Real};
use crate::runtime::simd::clones;
use crate::runtime::stop::filled;
use crate::runtime::threads::parallel_for;

/// The number of columns that are reduced together: their results stay in the cache.
const COLUMNS: usize = 1024;
/// The minimum number of elements per thread.
const GRAIN: usize = 64 * 1024;
/// The maximum number of parts of the rows that are reduced separately: each has its own results.
const PARTS: usize = 16;
/// The number of rows that are added in order; more are added pairwise.
const ROWS: usize = 32;
/// The number of rows that are combined with the results at a time: within these, results stay in registers.
const TOGETHER: usize = 4;

/// Splits `height` rows of `width` into parts, which depend only on these numbers. Reduces each part to a row of
/// results by `part(first row, its rows, first column, results)`, and combines those by `merge(results, results of the
/// next part)`.
fn in_parts<T: Sync, A: Copy + Send + Sync>(
    x: &[T],
    width: usize,
    start: A,
    out: &mut [A],
    part: impl Fn(usize, &[T], usize, &mut [A]) + Sync,
    merge: impl Fn(&mut [A], &[A]),
) {
    assert_eq!(out.len(), width, "one result for each column");
    assert!(x.len().is_multiple_of(width.max(1)), "whole rows");
    out.fill(start);
    let height = x.len().checked_div(width).unwrap_or(0);
    let parts = (x.len() / GRAIN).min(height / ROWS).clamp(1, PARTS);
    let mut others = filled(start, (parts - 1) * width);
    let blocks = width.div_ceil(COLUMNS);
    let (first, rest) = (Pointer(out.as_mut_ptr()), Pointer(others.as_mut_ptr()));
    let work = x.len() / (parts * blocks).max(1);
    parallel_for(parts * blocks, (GRAIN / 4 / work.max(1)).max(1), |range| {
        for k in range {
            let (p, column) = (k / blocks, k % blocks * COLUMNS);
            let (top, bottom) = (p * height / parts, (p + 1) * height / parts);
            let count = COLUMNS.min(width - column);
            let results = match p.checked_sub(1) {
                None => first.get(),
                Some(p) => rest.get().wrapping_add(p * width),
            };
            // SAFETY: only this call accesses these columns of the results of this part.
            let results = unsafe { std::slice::from_raw_parts_mut(results.add(column), count) };
            part(top, &x[top * width..bottom * width], column, results);
        }
    });
    others.chunks_exact(width.max(1)).for_each(|other| merge(out, other));
}

clones! {
    /// Combines every row of a part with the results.
    <[T, A, S]> fn combine_rows(rows: &[T], width: usize, column: usize, out: &mut [A], step: &S)
    where [T: Machine, A: Copy, S: Fn(A, T) -> A] if [T::VECTORIZE] {
        let mut groups = rows.chunks_exact(TOGETHER * width);
        for group in groups.by_ref() {
            let (n, row) = (out.len(), |i: usize| &group[i * width + column..]);
            let (a, b, c, d) = (&row(0)[..n], &row(1)[..n], &row(2)[..n], &row(3)[..n]);
            for (j, o) in out.iter_mut().enumerate() {
                *o = step(step(step(step(*o, a[j]), b[j]), c[j]), d[j]);
            }
        }
        for row in groups.remainder().chunks_exact(width) {
            for (o, v) in out.iter_mut().zip(&row[column..]) {
                *o = step(*o, *v);
            }
        }
    }
}

/// `start ∘ x[0, j] ∘ x[1, j] ∘ …` for every column `j` by `step`; `merge` joins the results of consecutive rows.
///
/// # Panics
/// If `x` doesn't consist of rows of `width`, or `out` isn't one row.
pub fn fold<T: Machine, A: Copy + Send + Sync>(
    x: &[T],
    width: usize,
    start: A,
    out: &mut [A],
    step: impl Fn(A, T) -> A + Sync,
    merge: impl Fn(A, A) -> A,
) {
    let part = |_, rows: &[T], column, out: &mut [A]| combine_rows(rows, width, column, out, &step);
    in_parts(x, width, start, out, part, |out, next| {
        out.iter_mut().zip(next).for_each(|(o, v)| *o = merge(*o, *v));
    });
}

/// The sum of every column, added pairwise.
pub fn sum<T: Machine + Num>(x: &[T], width: usize, out: &mut [T]) {
    let part = |_, rows: &[T], column, out: &mut [T]| sum_rows(rows, width, column, out);
    in_parts(x, width, T::zero(), out, part, |out, next| out.iter_mut().zip(next).for_each(|(o, v)| *o += *v));
}

fn sum_rows<T: Machine + Num>(rows: &[T], width: usize, column: usize, out: &mut [T]) {
    let height = rows.len() / width;
    if height <= ROWS {
        return combine_rows(rows, width, column, out, &|sum, v| sum + v);
    }
    let (first, second) = rows.split_at(height / 2 * width);
    let mut others = [T::zero(); COLUMNS];
    let others = &mut others[..out.len()];
    sum_rows(first, width, column, out);
    sum_rows(second, width, column, others);
    out.iter_mut().zip(others).for_each(|(o, v)| *o += *v);
}

/// The product of every column.
pub fn prod<T: Machine + Num>(x: &[T], width: usize, out: &mut [T]) {
    fold(x, width, T::one(), out, |a, v| a * v, |a, b| a * b);
}

/// The largest element of every column, or NaN if there is one. There must be at least one row.
pub fn max<T: Machine + Real>(x: &[T], width: usize, out: &mut [T]) {
    extreme(x, width, out, T::maximum);
}

/// The smallest element of every column, or NaN if there is one. There must be at least one row.
pub fn min<T: Machine + Real>(x: &[T], width: usize, out: &mut [T]) {
    extreme(x, width, out, T::minimum);
}

fn extreme<T: Machine + Real>(x: &[T], width: usize, out: &mut [T], better: impl Fn(T, T) -> T + Sync) {
    let part = |_, rows: &[T], column: usize, out: &mut [T]| {
        let first = rows.get(column..column + out.len()).expect("a part has rows");
        out.copy_from_slice(first);
        // The first row is combined again, which changes nothing but makes whole groups of rows more often.
        combine_rows(rows, width, column, out, &better);
    };
    in_parts(x, width, T::zero(), out, part, |out, next| {
        out.iter_mut().zip(next).for_each(|(o, v)| *o = better(*o, *v));
    });
}

/// For every column, the index of the first NaN or, without any, of the first largest element.
pub fn argmax<T: Machine + Real>(x: &[T], width: usize, out: &mut [i64]) {
    first_best(x, width, out, T::greater);
}

/// For every column, the index of the first NaN or, without any, of the first smallest element.
pub fn argmin<T: Machine + Real>(x: &[T], width: usize, out: &mut [i64]) {
    first_best(x, width, out, T::less);
}

/// For every column, the index of the first element that no other element is `better` than; NaN is better than any
/// number.
fn first_best<T: Machine + Real>(x: &[T], width: usize, out: &mut [i64], better: impl Fn(T, T) -> bool + Sync) {
    let wins = |a: T, b: T| better(a, b) | (a.isnan() & !b.isnan());
    let part = |top: usize, rows: &[T], column: usize, out: &mut [i64]| {
        let mut best = [T::zero(); COLUMNS];
        let best = &mut best[..out.len()];
        best.copy_from_slice(rows.get(column..column + out.len()).expect("a part has rows"));
        out.fill(top as i64);
        for (i, row) in rows.chunks_exact(width).enumerate().skip(1) {
            follow(&row[column..], (top + i) as i64, best, out, &wins);
        }
    };
    in_parts(x, width, 0, out, part, |out, next| {
        for (j, (o, n)) in out.iter_mut().zip(next).enumerate() {
            let element = |at: i64| x[at as usize * width + j];
            if wins(element(*n), element(*o)) {
                *o = *n;
            }
        }
    });
}

clones! {
    /// Updates the best so far with the next row.
    <[T, W]> fn follow(row: &[T], at: i64, best: &mut [T], places: &mut [i64], wins: &W)
    where [T: Machine, W: Fn(T, T) -> bool] if [T::VECTORIZE] {
        for ((v, b), place) in row.iter().zip(best).zip(places) {
            let take = wins(*v, *b);
            *b = if take { *v } else { *b };
            *place = if take { at } else { *place };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(height: usize, width: usize) -> Vec<f32> {
        (0..height * width)
            .map(|i| match i * 7919 % 1013 {
                0 if height < 100 => f32::NAN,
                v => (v % 64) as f32 - 30.0,
            })
            .collect()
    }

    #[test]
    fn columns_reduce_as_rows_of_the_transpose() {
        use crate::reduce::rows;
        for (height, width) in [(1, 1), (2, 9), (33, 8), (90, 1500), (5000, 40), (70_000, 3)] {
            let x = table(height, width);
            let (mut largest, mut smallest) = (vec![0.0; width], vec![0.0; width]);
            let (mut at_largest, mut at_smallest) = (vec![7; width], vec![7; width]);
            let (mut sums, mut count) = (vec![1.0; width], vec![9i64; width]);
            max(&x, width, &mut largest);
            min(&x, width, &mut smallest);
            argmax(&x, width, &mut at_largest);
            argmin(&x, width, &mut at_smallest);
            sum(&x, width, &mut sums);
            fold(&x, width, 0, &mut count, |n, v| n + i64::from(v != 0.0), |a, b| a + b);
            for j in 0..width {
                let column: Vec<f32> = x.iter().skip(j).step_by(width).copied().collect();
                let same = |a: f32, b: f32| assert!(a == b || a.is_nan() && b.is_nan(), "{a} {b}");
                same(largest[j], rows::max(&column).expect("some"));
                same(smallest[j], rows::min(&column).expect("some"));
                assert_eq!(Some(at_largest[j] as usize), rows::argmax(&column));
                assert_eq!(Some(at_smallest[j] as usize), rows::argmin(&column));
                same(sums[j], rows::sum(&column));
                assert_eq!(count[j], column.iter().filter(|v| **v != 0.0).count() as i64);
            }
        }
    }

    #[test]
    fn no_rows_give_the_start() {
        let mut out = [3.0; 4];
        sum::<f64>(&[], 4, &mut out);
        assert_eq!(out, [0.0; 4]);
        prod::<f64>(&[], 4, &mut out);
        assert_eq!(out, [1.0; 4]);
        sum::<f64>(&[], 0, &mut []);
    }
}
