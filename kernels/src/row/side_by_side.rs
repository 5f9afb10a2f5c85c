//! Functions of rows that are side by side: element `i` of row `r` is at `i · rows + r`. The results have the same bits as those of
//! contiguous rows.

use super::{Computed, Reduction, RowFunction};
use crate::reduce::scan;
use crate::runtime::simd::clones;
use crate::runtime::stop::filled;

impl Reduction {
    /// Like [`accumulate`](Reduction::accumulate), for rows of `n` elements.
    pub(crate) fn accumulate_side_by_side<T: Computed>(self, n: usize, rows: usize, x: &[T], out: &mut [T]) {
        scan::cumsum_side_by_side(n, rows, x, out, self == Reduction::ReverseCumsum);
    }
}

impl RowFunction {
    /// Like [`apply`](RowFunction::apply), for rows of `n` elements.
    pub(crate) fn apply_side_by_side<T: Computed>(&self, n: usize, rows: usize, x: &[&[T]], out: &mut [T]) {
        match (self, x) {
            // A shift by a number of places is one by whole positions in memory.
            (RowFunction::Shift(places), [x]) => {
                let rows = i64::try_from(rows).unwrap_or(i64::MAX);
                RowFunction::Shift(places.saturating_mul(rows)).apply(&[x], out);
            }
            (RowFunction::Reverse, [x]) => {
                let from = x.chunks_exact(rows).rev();
                out.chunks_exact_mut(rows).zip(from).for_each(|(out, x)| out.copy_from_slice(x));
            }
            (RowFunction::Cummax, [x]) => {
                let mut top = filled(Reduction::Max.identity::<T>(), rows);
                for (out, x) in out.chunks_exact_mut(rows).zip(x.chunks_exact(rows)) {
                    cummax(x, &mut top, out);
                }
            }
            (RowFunction::Recurrence, [x, a]) if n > 0 => {
                out[..rows].copy_from_slice(&x[..rows]);
                for at in (rows..n * rows).step_by(rows) {
                    let (before, out) = out[at - rows..].split_at_mut(rows);
                    recur(&x[at..][..rows], &a[at..][..rows], before, &mut out[..rows]);
                }
            }
            (RowFunction::Take, [x, index]) => {
                for (at, (out, index)) in out.iter_mut().zip(*index).enumerate() {
                    *out = index.as_position(n).map_or(T::ZERO, |place| x[place * rows + at % rows]);
                }
            }
            (RowFunction::Put, [x, index]) => {
                out.fill(T::ZERO);
                for (at, (x, index)) in x.iter().zip(*index).enumerate() {
                    if let Some(place) = index.as_position(n) {
                        out[place * rows + at % rows] += *x;
                    }
                }
            }
            // One row after the other.
            _ => {
                let mut one: Vec<Vec<T>> = x.iter().map(|_| filled(T::ZERO, n)).collect();
                let mut result = filled(T::ZERO, n);
                for row in 0..rows {
                    for (one, x) in one.iter_mut().zip(x) {
                        one.iter_mut().zip(x[row..].iter().step_by(rows)).for_each(|(to, x)| *to = *x);
                    }
                    let one: Vec<&[T]> = one.iter().map(|row| &row[..]).collect();
                    self.apply(&one, &mut result);
                    out[row..].iter_mut().step_by(rows).zip(&result).for_each(|(out, x)| *out = *x);
                }
            }
        }
    }
}

clones! {
    <[T]> fn cummax(x: &[T], top: &mut [T], out: &mut [T]) where [T: Computed] if [T::FOR_EACH_LEVEL] {
        for ((x, top), out) in x.iter().zip(top).zip(out) {
            *top = top.maximum(*x);
            *out = *top;
        }
    }
}

clones! {
    /// One step of recurrences.
    <[T]> fn recur(x: &[T], a: &[T], before: &[T], out: &mut [T]) where [T: Computed] if [T::FOR_EACH_LEVEL] {
        for (((x, a), before), out) in x.iter().zip(a).zip(before).zip(out) {
            *out = *a * *before + *x;
        }
    }
}
