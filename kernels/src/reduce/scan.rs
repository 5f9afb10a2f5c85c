//! Cumulative sums.

use crate::memory::copy::Pointer;
use crate::number::scalar::{Machine, Num};
use crate::reduce::rows;
use crate::reduce::table::{Columns, ColumnsMut};
use crate::runtime::simd::clones;
use crate::runtime::stop::{filled, poll};
use crate::runtime::threads::parallel_for;

/// The number of elements whose sums are computed together.
const WIDTH: usize = 16;
/// The number of elements that are copied at a time when a row is updated in place.
const ASIDE: usize = 256;
/// The number of elements of a long row per thread, and of columns that are added together.
const GRAIN: usize = 32 * 1024;
const COLUMNS: usize = 256;
/// The number of rows after which sums along columns poll.
pub(crate) const POLL_INTERVAL: usize = 64 * 1024;

/// `out[i] = x[0] + … + x[i]`. A long row is split into parts, which are summed separately from the elements before
/// them.
///
/// # Panics
/// If the lengths differ.
pub fn cumsum<T: Machine + Num>(x: &[T], out: &mut [T]) {
    assert_eq!(x.len(), out.len(), "one sum for each element");
    if x.len() <= 2 * GRAIN {
        return scan(x, T::zero(), out);
    }
    let parts = x.len().div_ceil(GRAIN);
    let mut before = filled(T::zero(), parts);
    let to = Pointer(before.as_mut_ptr());
    parallel_for(parts, 1, |range| {
        for k in range {
            let sum = rows::sum_map(&x[k * GRAIN..x.len().min((k + 1) * GRAIN)], |x| x);
            // SAFETY: k is one of the parts, and no other call writes there.
            unsafe { to.get().add(k).write(sum) };
        }
    });
    let mut total = T::zero();
    for sum in &mut before {
        let next = total + *sum;
        *sum = total;
        total = next;
    }
    let to = Pointer(out.as_mut_ptr());
    parallel_for(parts, 1, |range| {
        for k in range {
            let x = &x[k * GRAIN..x.len().min((k + 1) * GRAIN)];
            // SAFETY: the part is within `out`, and no other call writes there.
            scan(x, before[k], unsafe { std::slice::from_raw_parts_mut(to.get().add(k * GRAIN), x.len()) });
        }
    });
}

/// Like [`cumsum`], in place and on this thread.
pub(crate) fn cumsum_in_place<T: Machine + Num>(row: &mut [T]) {
    let (mut total, mut block) = (T::zero(), [T::zero(); ASIDE]);
    for part in row.chunks_mut(block.len()) {
        let x = &mut block[..part.len()];
        x.copy_from_slice(part);
        scan(x, total, part);
        total = part[x.len() - 1];
    }
}

clones! {
    /// The cumulative sums of a part of a row, plus `before`. Each step within a block doubles the number of elements
    /// in each sum; only the total so far passes from block to block.
    <[T]> fn scan(x: &[T], before: T, out: &mut [T]) where [T: Machine + Num] if [T::VECTORIZE] {
        let mut total = [before; WIDTH];
        let (blocks, rest) = x.as_chunks::<WIDTH>();
        let (out_blocks, out_rest) = out.as_chunks_mut::<WIDTH>();
        for (x, out) in blocks.iter().zip(out_blocks) {
            let sums = step::<T, 8>(step::<T, 4>(step::<T, 2>(step::<T, 1>(*x))));
            for i in 0..WIDTH {
                out[i] = total[i] + sums[i];
                total[i] += sums[WIDTH - 1];
            }
        }
        let [mut total, ..] = total;
        for (o, v) in out_rest.iter_mut().zip(rest) {
            total += *v;
            *o = total;
        }
    }
}

/// Doubles the number of elements in each sum by adding the sum `STEP` elements before it.
#[inline(always)]
fn step<T: Num, const STEP: usize>(sums: [T; WIDTH]) -> [T; WIDTH] {
    let mut next = sums;
    for i in STEP..WIDTH {
        next[i] = sums[i - STEP] + sums[i];
    }
    next
}

/// Like [`cumsum_in_place`], for `rows` rows of `n` elements that are side by side; from the last element on if reversed. The sums
/// have the same bits as those of contiguous rows.
#[cfg(feature = "engine")]
pub(crate) fn cumsum_side_by_side<T: Machine + Num>(n: usize, rows: usize, x: &[T], out: &mut [T], is_reversed: bool) {
    let place = |at: usize| rows * if is_reversed { n - 1 - at } else { at };
    let mut total = filled(T::zero(), rows);
    let mut sums = filled(T::zero(), WIDTH * rows);
    let whole = n - n % WIDTH;
    for start in (0..whole).step_by(WIDTH) {
        sums.chunks_exact_mut(rows.max(1))
            .zip(start..)
            .for_each(|(sum, at)| sum.copy_from_slice(&x[place(at)..][..rows]));
        for step in [1, 2, 4, 8] {
            for k in (step..WIDTH).rev() {
                let (before, sum) = sums.split_at_mut(k * rows);
                add_to(&before[(k - step) * rows..][..rows], &mut sum[..rows]);
            }
        }
        for k in 0..WIDTH {
            let out = &mut out[place(start + k)..][..rows];
            out.copy_from_slice(&total);
            add_to(&sums[k * rows..][..rows], out);
        }
        add_to(&sums[(WIDTH - 1) * rows..], &mut total);
    }
    for at in whole..n {
        add_to(&x[place(at)..][..rows], &mut total);
        out[place(at)..][..rows].copy_from_slice(&total);
    }
}

#[cfg(feature = "engine")]
clones! {
    <[T]> fn add_to(x: &[T], sums: &mut [T]) where [T: Machine + Num] if [T::VECTORIZE] {
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum += *x;
        }
    }
}

/// The cumulative sums along every column of a table.
///
/// # Panics
/// If the sizes differ.
pub fn cumsum_columns<T: Machine + Num>(x: Columns<'_, T>, mut out: ColumnsMut<'_, T>) {
    let (height, width) = (x.height(), x.width());
    assert_eq!((height, width), (out.height(), out.width()), "one sum for each element");
    if let (Some((row, _)), Some(out)) = (x.only(&mut [()]), out.only()) {
        return cumsum(row, out);
    }
    let (to, stride) = out.place();
    let to = Pointer(to);
    let grain = (GRAIN / (COLUMNS * height.max(1))).max(1);
    parallel_for(width.div_ceil(COLUMNS), grain, |range| {
        for start in range.map(|k| k * COLUMNS) {
            let count = COLUMNS.min(width - start);
            let mut sums = [T::zero(); COLUMNS];
            for i in 0..height {
                if i % POLL_INTERVAL == 0 {
                    poll();
                }
                // SAFETY: these columns are within `out`, and no other call writes there.
                let out = unsafe { std::slice::from_raw_parts_mut(to.get().add(i * stride + start), count) };
                add(&x.row(i)[start..][..count], &mut sums, out);
            }
        }
    });
}

clones! {
    /// Adds the next row to the sums so far.
    <[T]> fn add(row: &[T], sums: &mut [T; COLUMNS], out: &mut [T]) where [T: Machine + Num] if [T::VECTORIZE] {
        for ((v, sum), o) in row.iter().zip(sums).zip(out) {
            *sum += *v;
            *o = *sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_added_in_order() {
        for n in [0, 1, 255, 256, 700, 2 * GRAIN, 3 * GRAIN + 77] {
            let x: Vec<i64> = (0..n as i64).map(|i| i * i % 1001 - 500).collect();
            let mut out = vec![0; n];
            cumsum(&x, &mut out);
            let sums: Vec<i64> = x
                .iter()
                .scan(0, |sum, x| {
                    *sum += x;
                    Some(*sum)
                })
                .collect();
            assert_eq!(out, sums);
        }
    }

    #[test]
    fn columns_are_added_up_apart() {
        for (height, width) in [(0, 3), (5, 0), (1, 1), (70, 3), (300, 700)] {
            let x: Vec<i32> = (0..height * width).map(|i| i as i32 % 97).collect();
            let mut out = vec![0; x.len()];
            cumsum_columns(Columns::new(&x, height, width, width), ColumnsMut::new(&mut out, height, width, width));
            let mut expected = x.clone();
            (width..x.len()).for_each(|i| expected[i] += expected[i - width]);
            assert_eq!(out, expected);
        }
    }
}
