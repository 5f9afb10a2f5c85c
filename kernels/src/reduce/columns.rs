//! Reductions along the columns of a table: whole rows are combined, in memory order. A table of one column is a contiguous row, which
//! is reduced in lanes ([`rows`]).

use std::ops::Range;

use crate::memory::copy::Pointer;
use crate::number::lit;
use crate::number::scalar::{Element, Field, Machine, Num, Real};
use crate::reduce::table::Columns;
use crate::reduce::{rows, scan};
use crate::runtime::simd::clones;
use crate::runtime::stop::filled;
use crate::runtime::threads::parallel_for;

pub use scan::cumsum_columns as cumsum;

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

/// Splits the rows of a table into parts, which depend only on its size. Reduces each part to a row of results by
/// `part(its rows, its columns, results)`, and combines those by `merge(results, results of the next part)`.
fn in_parts<T: Sync, A: Copy + Send + Sync>(
    x: Columns<'_, T>,
    start: A,
    out: &mut [A],
    part: impl Fn(Range<usize>, Range<usize>, &mut [A]) + Sync,
    merge: impl Fn(&mut [A], &[A]),
) {
    let (height, width) = (x.height(), x.width());
    assert_eq!(out.len(), width, "one result for each column");
    out.fill(start);
    let parts = (height * width / GRAIN).min(height / ROWS).clamp(1, PARTS);
    let mut others = filled(start, (parts - 1) * width);
    let blocks = width.div_ceil(COLUMNS);
    let (first, rest) = (Pointer(out.as_mut_ptr()), Pointer(others.as_mut_ptr()));
    let work = height * width / (parts * blocks).max(1);
    parallel_for(parts * blocks, (GRAIN / 4 / work.max(1)).max(1), |range| {
        for k in range {
            let (p, column) = (k / blocks, k % blocks * COLUMNS);
            let count = COLUMNS.min(width - column);
            let results = match p.checked_sub(1) {
                None => first.get(),
                Some(p) => rest.get().wrapping_add(p * width),
            };
            // SAFETY: only this call accesses these columns of the results of this part.
            let results = unsafe { std::slice::from_raw_parts_mut(results.add(column), count) };
            part(p * height / parts..(p + 1) * height / parts, column..column + count, results);
        }
    });
    others.chunks_exact(width.max(1)).for_each(|other| merge(out, other));
}

clones! {
    /// Combines some rows with the results.
    <[T, A, S]> fn combine_rows(x: Columns<'_, T>, rows: Range<usize>, columns: Range<usize>, out: &mut [A], step: &S)
    where [T: Machine, A: Copy, S: Fn(A, T) -> A] if [T::VECTORIZE] {
        let (n, mut at) = (out.len(), rows.start);
        while at + TOGETHER <= rows.end {
            let row = |i: usize| &x.row(at + i)[columns.clone()];
            let (a, b, c, d) = (&row(0)[..n], &row(1)[..n], &row(2)[..n], &row(3)[..n]);
            for (j, o) in out.iter_mut().enumerate() {
                *o = step(step(step(step(*o, a[j]), b[j]), c[j]), d[j]);
            }
            at += TOGETHER;
        }
        for at in at..rows.end {
            for (o, v) in out.iter_mut().zip(&x.row(at)[columns.clone()]) {
                *o = step(*o, *v);
            }
        }
    }
}

/// `start ∘ x[0, j] ∘ x[1, j] ∘ …` for every column `j` by `step`; `merge` joins the results of consecutive rows, of which `start` is
/// the neutral element.
///
/// # Panics
/// If `out` is not one row.
#[inline(always)]
pub fn fold<T: Machine, A: Copy + Send + Sync>(
    x: Columns<'_, T>,
    start: A,
    out: &mut [A],
    step: impl Fn(A, T) -> A + Sync,
    merge: impl Fn(A, A) -> A + Sync,
) {
    match x.only(out) {
        Some((row, out)) => *out = rows::fold(row, start, step, merge),
        None => fold_table(x, start, out, step, merge),
    }
}

fn fold_table<T: Machine, A: Copy + Send + Sync>(
    x: Columns<'_, T>,
    start: A,
    out: &mut [A],
    step: impl Fn(A, T) -> A + Sync,
    merge: impl Fn(A, A) -> A,
) {
    let part = |rows: Range<usize>, columns, out: &mut [A]| combine_rows(x, rows, columns, out, &step);
    in_parts(x, start, out, part, |out, next| {
        out.iter_mut().zip(next).for_each(|(o, v)| *o = merge(*o, *v));
    });
}

/// The sum of every column, added pairwise.
#[inline(always)]
pub fn sum<T: Machine + Num>(x: Columns<'_, T>, out: &mut [T]) {
    match x.only(out) {
        Some((row, out)) => *out = rows::sum(row),
        None => sum_table(x, out),
    }
}

fn sum_table<T: Machine + Num>(x: Columns<'_, T>, out: &mut [T]) {
    let part = |rows, columns, out: &mut [T]| sum_rows(x, rows, columns, out);
    in_parts(x, T::zero(), out, part, |out, next| out.iter_mut().zip(next).for_each(|(o, v)| *o += *v));
}

/// The mean of every column; NaN without rows.
#[inline(always)]
pub fn mean<T: Machine + Field>(x: Columns<'_, T>, out: &mut [T]) {
    sum(x, out);
    let count: T = lit(x.height());
    out.iter_mut().for_each(|o| *o = o.divide(count));
}

fn sum_rows<T: Machine + Num>(x: Columns<'_, T>, rows: Range<usize>, columns: Range<usize>, out: &mut [T]) {
    if rows.len() <= ROWS {
        return combine_rows(x, rows, columns, out, &|sum, v| sum + v);
    }
    let middle = rows.start + rows.len() / 2;
    let mut others = [T::zero(); COLUMNS];
    let others = &mut others[..out.len()];
    sum_rows(x, rows.start..middle, columns.clone(), out);
    sum_rows(x, middle..rows.end, columns, others);
    out.iter_mut().zip(others).for_each(|(o, v)| *o += *v);
}

/// The product of every column.
#[inline(always)]
pub fn prod<T: Machine + Num>(x: Columns<'_, T>, out: &mut [T]) {
    match x.only(out) {
        Some((row, out)) => *out = rows::prod(row),
        None => fold_table(x, T::one(), out, |a, v| a * v, |a, b| a * b),
    }
}

/// The largest element of every column, or NaN if there is one. There must be at least one row.
#[inline(always)]
pub fn max<T: Machine + Real>(x: Columns<'_, T>, out: &mut [T]) {
    match x.only(out) {
        Some((row, out)) => *out = rows::max(row).unwrap_or_default(),
        None => extreme(x, out, T::maximum),
    }
}

/// The smallest element of every column, or NaN if there is one. There must be at least one row.
#[inline(always)]
pub fn min<T: Machine + Real>(x: Columns<'_, T>, out: &mut [T]) {
    match x.only(out) {
        Some((row, out)) => *out = rows::min(row).unwrap_or_default(),
        None => extreme(x, out, T::minimum),
    }
}

fn extreme<T: Machine + Real>(x: Columns<'_, T>, out: &mut [T], better: impl Fn(T, T) -> T + Sync) {
    let part = |rows: Range<usize>, columns: Range<usize>, out: &mut [T]| {
        out.copy_from_slice(&x.row(rows.start)[columns.clone()]);
        // The first row is combined again, which changes nothing but makes whole groups of rows more often.
        combine_rows(x, rows, columns, out, &better);
    };
    in_parts(x, T::zero(), out, part, |out, next| {
        out.iter_mut().zip(next).for_each(|(o, v)| *o = better(*o, *v));
    });
}

/// For every column, the index of the first NaN or, without any, of the first largest element. There must be at least one row.
#[inline(always)]
pub fn argmax<T: Machine + Real>(x: Columns<'_, T>, out: &mut [i64]) {
    match x.only(out) {
        Some((row, out)) => *out = rows::argmax(row).unwrap_or_default() as i64,
        None => first_best(x, out, T::greater),
    }
}

/// For every column, the index of the first NaN or, without any, of the first smallest element. There must be at least one row.
#[inline(always)]
pub fn argmin<T: Machine + Real>(x: Columns<'_, T>, out: &mut [i64]) {
    match x.only(out) {
        Some((row, out)) => *out = rows::argmin(row).unwrap_or_default() as i64,
        None => first_best(x, out, T::less),
    }
}

/// For every column, the index of the first element that no other element is `better` than; NaN is better than any
/// number.
fn first_best<T: Machine + Real>(x: Columns<'_, T>, out: &mut [i64], better: impl Fn(T, T) -> bool + Sync) {
    let wins = |a: T, b: T| better(a, b) | (a.isnan() & !b.isnan());
    let part = |rows: Range<usize>, columns: Range<usize>, out: &mut [i64]| {
        let mut best = [T::zero(); COLUMNS];
        let best = &mut best[..out.len()];
        best.copy_from_slice(&x.row(rows.start)[columns.clone()]);
        out.fill(rows.start as i64);
        for at in rows.skip(1) {
            follow(&x.row(at)[columns.clone()], at as i64, best, out, &wins);
        }
    };
    in_parts(x, 0, out, part, |out, next| {
        for (j, (o, n)) in out.iter_mut().zip(next).enumerate() {
            let element = |at: i64| x.row(at as usize)[j];
            if wins(element(*n), element(*o)) {
                *o = *n;
            }
        }
    });
}

/// Whether any element of a column is true. A number is true unless it is 0.
#[inline(always)]
pub fn any<T: Machine + Element>(x: Columns<'_, T>, out: &mut [bool]) {
    match x.only(out) {
        Some((row, out)) => *out = rows::any(row, |v| v.truthy()),
        None => fold_table(x, false, out, |any, v| any | v.truthy(), |a, b| a | b),
    }
}

/// Whether all elements of a column are true.
#[inline(always)]
pub fn all<T: Machine + Element>(x: Columns<'_, T>, out: &mut [bool]) {
    match x.only(out) {
        Some((row, out)) => *out = !rows::any(row, |v| !v.truthy()),
        None => fold_table(x, true, out, |all, v| all & v.truthy(), |a, b| a & b),
    }
}

/// The number of elements of every column that are true.
#[inline(always)]
pub fn count_nonzero<T: Machine + Element>(x: Columns<'_, T>, out: &mut [i64]) {
    match x.only(out) {
        Some((row, out)) => *out = rows::count(row, |v| v.truthy()) as i64,
        None => fold_table(x, 0, out, |n, v| n + i64::from(v.truthy()), |a, b| a + b),
    }
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
        for (height, stride, width) in [
            (1, 1, 1),
            (2, 9, 9),
            (33, 8, 8),
            (90, 1500, 1500),
            (5000, 40, 40),
            (70_000, 3, 3),
            (90, 1700, 1100),
            (500, 1, 1),
            (7, 5, 1),
        ] {
            let memory = table(height, stride);
            let x = Columns::new(&memory, height, width, stride);
            let (mut largest, mut smallest) = (vec![0.0; width], vec![0.0; width]);
            let (mut at_largest, mut at_smallest) = (vec![7; width], vec![7; width]);
            let (mut sums, mut count) = (vec![1.0; width], vec![9i64; width]);
            let (mut is_any, mut are_all) = (vec![false; width], vec![false; width]);
            max(x, &mut largest);
            min(x, &mut smallest);
            argmax(x, &mut at_largest);
            argmin(x, &mut at_smallest);
            sum(x, &mut sums);
            count_nonzero(x, &mut count);
            any(x, &mut is_any);
            all(x, &mut are_all);
            for j in 0..width {
                let column: Vec<f32> = memory.iter().skip(j).step_by(stride).copied().collect();
                let same = |a: f32, b: f32| assert!(a == b || a.is_nan() && b.is_nan(), "{a} {b}");
                same(largest[j], rows::max(&column).expect("some"));
                same(smallest[j], rows::min(&column).expect("some"));
                assert_eq!(Some(at_largest[j] as usize), rows::argmax(&column));
                assert_eq!(Some(at_smallest[j] as usize), rows::argmin(&column));
                same(sums[j], rows::sum(&column));
                assert_eq!(count[j], column.iter().filter(|v| **v != 0.0).count() as i64);
                assert_eq!(is_any[j], column.iter().any(|v| *v != 0.0));
                assert_eq!(are_all[j], column.iter().all(|v| *v != 0.0));
            }
        }
    }

    #[test]
    fn no_rows_give_the_start() {
        let mut out = [3.0; 4];
        sum::<f64>(Columns::new(&[], 0, 4, 4), &mut out);
        assert_eq!(out, [0.0; 4]);
        prod::<f64>(Columns::new(&[], 0, 4, 4), &mut out);
        assert_eq!(out, [1.0; 4]);
        sum::<f64>(Columns::new(&[], 4, 0, 0), &mut []);
        prod::<f64>(Columns::new(&[], 0, 1, 1), &mut out[..1]);
        assert_eq!(out[0], 1.0);
    }
}
