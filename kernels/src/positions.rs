//! Elements and rows taken from given positions, or added there.
//!
//! A position counts from either end, −1 is the last one. One that is out of range is given back as the error, the first of
//! them if there are several. Positions are checked by the block, so the loops that use them don't look again.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::copy::Pointer;
use crate::scalar::{Machine, Num};
use crate::simd::clones;
use crate::threads::parallel_for;

/// Bytes that are worth a thread.
const GRAIN: usize = 64 * 1024;
/// Positions that are checked together: they are still in cache when they are used.
const BLOCK: usize = 1024;
/// Shorter rows, in bytes, are added by one thread.
const WIDE: usize = 64;
/// Bytes of a part of a table to which one thread adds: zeros are still in cache when they are added to.
const PART: usize = 128 * 1024;

clones! {
    /// Whether all positions lie in `-size..size`.
    <[]> fn in_range(index: &[i64], size: i64) -> bool where [] {
        let span = 2 * size as u64;
        index.iter().fold(true, |all, i| all & ((i.wrapping_add(size) as u64) < span))
    }
}

/// A position in range, counted from the front.
#[inline(always)]
fn place(index: i64, size: i64) -> usize {
    (index + (size & (index >> 63))) as usize
}

/// The first position that is out of range.
#[cold]
fn first_outside(index: &[i64], size: usize) -> i64 {
    let size = size as i64;
    index.iter().copied().find(|i| !(-size..size).contains(i)).unwrap_or_default()
}

/// Calls `work` with ranges of checked positions, on several threads.
fn for_checked(index: &[i64], size: usize, grain: usize, work: impl Fn(Range<usize>) + Sync) -> Result<(), i64> {
    let failed = AtomicBool::new(false);
    parallel_for(index.len(), grain, |range| {
        for start in range.clone().step_by(BLOCK) {
            let block = start..range.end.min(start + BLOCK);
            if !in_range(&index[block.clone()], size as i64) {
                return failed.store(true, Ordering::Relaxed);
            }
            work(block);
        }
    });
    if failed.into_inner() { Err(first_outside(index, size)) } else { Ok(()) }
}

/// The positions counted from the front.
///
/// # Panics
/// If the lengths differ.
pub fn from_front(index: &[i64], size: usize, out: &mut [i64]) -> Result<(), i64> {
    assert_eq!(index.len(), out.len(), "one place for each position");
    let to = Pointer(out.as_mut_ptr());
    for_checked(index, size, GRAIN / 8, |range| {
        // SAFETY: the range lies within `out`, and no other call writes there.
        let out = unsafe { std::slice::from_raw_parts_mut(to.get().add(range.start), range.len()) };
        out.iter_mut().zip(&index[range]).for_each(|(o, i)| *o = place(*i, size as i64) as i64);
    })
}

/// `out[k] = x[index[k]]`.
///
/// # Panics
/// If `out` and `index` differ in length.
pub fn take<T: Copy + Send + Sync>(x: &[T], index: &[i64], out: &mut [T]) -> Result<(), i64> {
    assert_eq!(index.len(), out.len(), "one position for each element");
    let (size, to) = (x.len() as i64, Pointer(out.as_mut_ptr()));
    for_checked(index, x.len(), GRAIN / 8, |range| {
        // SAFETY: the range lies within `out`, and no other call writes there.
        let out = unsafe { std::slice::from_raw_parts_mut(to.get().add(range.start), range.len()) };
        for (o, i) in out.iter_mut().zip(&index[range]) {
            // SAFETY: the position was checked.
            *o = unsafe { *x.get_unchecked(place(*i, size)) };
        }
    })
}

/// Row `k` of `out` is row `index[k]` of the table; rows are `width` bytes, whatever they mean.
///
/// # Panics
/// If `out` doesn't hold one row for each position, or the table doesn't hold `size` rows.
pub fn take_rows(table: &[u8], size: usize, width: usize, index: &[i64], out: &mut [u8]) -> Result<(), i64> {
    assert_eq!(table.len(), size * width, "whole rows");
    assert_eq!(out.len(), index.len() * width, "one position for each row");
    match width {
        1 => take_arrays::<1>(table, index, out),
        2 => take_arrays::<2>(table, index, out),
        4 => take_arrays::<4>(table, index, out),
        8 => take_arrays::<8>(table, index, out),
        16 => take_arrays::<16>(table, index, out),
        _ => {
            let to = Pointer(out.as_mut_ptr());
            for_checked(index, size, (GRAIN / width.max(1)).max(1), |range| {
                for k in range {
                    let from = place(index[k], size as i64) * width;
                    // SAFETY: both rows lie within their slices, and no other call writes to row k.
                    unsafe { to.get().add(k * width).copy_from_nonoverlapping(table.as_ptr().add(from), width) };
                }
            })
        }
    }
}

fn take_arrays<const N: usize>(table: &[u8], index: &[i64], out: &mut [u8]) -> Result<(), i64> {
    take(table.as_chunks::<N>().0, index, out.as_chunks_mut::<N>().0)
}

/// Zeros, to which row `k` of `x` is added at row `index[k]`, one after the other in this order.
///
/// # Panics
/// If `x` doesn't hold one row of `width` for each position, or `out` doesn't hold `size` rows.
pub fn add_rows<T: Machine + Num>(x: &[T], width: usize, index: &[i64], size: usize, out: &mut [T]) -> Result<(), i64> {
    assert_eq!(x.len(), index.len() * width, "one position for each row");
    assert_eq!(out.len(), size * width, "whole rows");
    for_checked(index, size, GRAIN, |_| ())?;
    let row = width * size_of::<T>();
    if row < WIDE || size_of_val(x) < GRAIN {
        out.fill(T::zero());
        if width == 1 {
            add_elements(x, index, size, out);
        } else {
            index.iter().enumerate().for_each(|(k, i)| add_row(x, k, width, place(*i, size as i64), out));
        }
        return Ok(());
    }
    // Every part of the table has one thread, which adds the rows for it in their order.
    let shift = (PART / row).max(1).ilog2();
    let parts = size.div_ceil(1 << shift);
    let (starts, order) = by_part(index, size, shift, parts);
    let to = Pointer(out.as_mut_ptr());
    parallel_for(parts, 1, |range| {
        for part in range {
            let first = part << shift;
            let rows = (size - first).min(1 << shift);
            // SAFETY: these rows lie within `out`, and belong to this part alone.
            let out = unsafe { std::slice::from_raw_parts_mut(to.get().add(first * width), rows * width) };
            out.fill(T::zero());
            for k in &order[starts[part]..starts[part + 1]] {
                add_row(x, *k, width, place(index[*k], size as i64) - first, out);
            }
        }
    });
    Ok(())
}

/// The numbers of the positions in each part of `1 << shift` rows one part after the other, and where those of a part begin.
fn by_part(index: &[i64], size: usize, shift: u32, parts: usize) -> (Vec<usize>, Vec<usize>) {
    let part = |i: &i64| place(*i, size as i64) >> shift;
    let mut starts = vec![0; parts + 1];
    index.iter().for_each(|i| starts[part(i) + 1] += 1);
    (0..parts).for_each(|p| starts[p + 1] += starts[p]);
    let (mut next, mut order) = (starts.clone(), vec![0; index.len()]);
    for (k, i) in index.iter().enumerate() {
        let place = &mut next[part(i)];
        order[*place] = k;
        *place += 1;
    }
    (starts, order)
}

/// Adds row `k` of `x` to the one at `at`.
fn add_row<T: Num>(x: &[T], k: usize, width: usize, at: usize, out: &mut [T]) {
    out[at * width..][..width].iter_mut().zip(&x[k * width..]).for_each(|(o, v)| *o += *v);
}

/// Rows of one element, at positions that were checked.
fn add_elements<T: Machine + Num>(x: &[T], index: &[i64], size: usize, out: &mut [T]) {
    for (v, i) in x.iter().zip(index) {
        out[place(*i, size as i64)] += *v;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_either_end() {
        let mut out = [0; 4];
        take(&[1, 2, 3], &[0, -1, 2, -3], &mut out).expect("in range");
        assert_eq!(out, [1, 3, 3, 1]);
        let mut places = [9; 3];
        from_front(&[0, -1, -3], 3, &mut places).expect("in range");
        assert_eq!(places, [0, 2, 0]);
        assert_eq!(from_front(&[0, 3, -4], 3, &mut places), Err(3));
    }

    #[test]
    fn the_first_position_out_of_range_is_told() {
        for size in [0, 3] {
            let index: Vec<i64> = (0..100_000).map(|i| if i < 70_000 { 2 * i64::from(size > 0) } else { i }).collect();
            let expected = if size == 0 { 0 } else { 70_000 };
            let x = vec![1.0; size];
            assert_eq!(take(&x, &index, &mut vec![0.0; index.len()]), Err(expected));
            let rows = vec![0.5; index.len()];
            assert_eq!(add_rows(&rows, 1, &index, size, &mut vec![0.0; size]), Err(expected));
        }
        for extreme in [i64::MIN, i64::MAX, 3, -4] {
            assert_eq!(take(&[1, 2, 3], &[0, extreme, 9], &mut [0; 3]), Err(extreme));
        }
    }

    #[test]
    fn rows_of_every_width_are_taken_and_added() {
        for width in [0, 1, 2, 3, 4, 8, 16, 33, 128] {
            let table: Vec<u8> = (0..width * 50).map(|i| (i % 251) as u8).collect();
            let index: Vec<i64> = (0..3000).map(|i| i * 7 % 100 - 50).collect();
            let mut out = vec![0; index.len() * width];
            take_rows(&table, 50, width, &index, &mut out).expect("in range");
            let x: Vec<f64> = (0..out.len()).map(|i| (i % 13) as f64).collect();
            let mut sums = vec![f64::NAN; 50 * width];
            add_rows(&x, width, &index, 50, &mut sums).expect("in range");
            let mut expected = vec![0.0; 50 * width];
            for (k, i) in index.iter().enumerate() {
                let at = (i + if *i < 0 { 50 } else { 0 }) as usize;
                assert_eq!(out[k * width..][..width], table[at * width..][..width]);
                (0..width).for_each(|j| expected[at * width + j] += x[k * width + j]);
            }
            assert_eq!(sums, expected);
        }
    }
}
