//! Gathers elements and rows at indices, and adds rows at indices.
//!
//! Negative indices count from the end; −1 is the last element. An error reports the first index that is out of range.
//!
//! Other threads may write to the memory of the indices. Each index is therefore read once, and only the value that was
//! checked is used.

use std::collections::TryReserveError;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use ndarray::ArrayView2;

use crate::memory::copy::Pointer;
use crate::memory::zeros;
use crate::number::scalar::{Machine, Num};
use crate::runtime::simd::clones;
use crate::runtime::threads::parallel_for;

/// The minimum number of bytes per thread.
const GRAIN: usize = 64 * 1024;
/// The number of indices of rows that are checked together: they are still in the cache when they are used.
const BLOCK: usize = 1024;
/// The size in bytes of a vector register that every CPU has.
const REGISTER: usize = 16;
/// Rows with fewer bytes than this are added by one thread.
const WIDE: usize = 64;
/// The size in bytes of a part of a table that one thread adds to: its zeros are still in the cache when they are added
/// to.
const PART: usize = 128 * 1024;

/// The reason why indices can't be used.
#[derive(Debug, PartialEq, Eq)]
pub enum IndexError {
    /// This index is out of range.
    OutOfRange(i64),
    /// There is not enough memory to store the indices.
    OutOfMemory(TryReserveError),
}

impl From<TryReserveError> for IndexError {
    fn from(error: TryReserveError) -> IndexError {
        IndexError::OutOfMemory(error)
    }
}

/// An index counted from the start; it is not in `0..size` if the index is out of range.
#[inline]
fn from_start(index: i64, size: i64) -> i64 {
    index + (size & (index >> 63))
}

clones! {
    /// Reads indices and wraps negative ones. Returns true if all of them are then in `0..size`.
    <[]> fn read(index: &[i64], size: i64, wrapped: &mut [MaybeUninit<i64>]) -> bool where [] {
        let mut in_range = true;
        for (at, i) in wrapped.iter_mut().zip(index) {
            let wrapped = from_start(*i, size);
            in_range &= (wrapped as u64) < size as u64;
            *at = MaybeUninit::new(wrapped);
        }
        in_range
    }
}

/// Reads indices into `wrapped`. All returned indices are in `0..size`.
#[inline]
fn checked<'a>(index: &[i64], size: usize, wrapped: &'a mut [MaybeUninit<i64>]) -> Result<&'a [i64], i64> {
    assert_eq!(index.len(), wrapped.len(), "one result for each index");
    let in_range = read(index, size as i64, wrapped);
    // SAFETY: `read` has written all of them.
    let wrapped = unsafe { std::slice::from_raw_parts(wrapped.as_ptr().cast::<i64>(), wrapped.len()) };
    if in_range { Ok(wrapped) } else { Err(first_outside(wrapped, size as i64)) }
}

/// The first index that is out of range, with its original value.
#[cold]
fn first_outside(wrapped: &[i64], size: i64) -> i64 {
    let outside = wrapped.iter().copied().find(|at| !(0..size).contains(at)).unwrap_or_default();
    if outside < 0 { outside - size } else { outside }
}

/// Calls `work` with ranges of positions, on several threads. It returns the first index that is out of range, if there is one.
fn for_ranges(
    len: usize,
    grain: usize,
    work: impl Fn(Range<usize>) -> Result<(), i64> + Sync,
) -> Result<(), IndexError> {
    let failed = Mutex::new(None::<(usize, i64)>);
    parallel_for(len, grain, |range| {
        let start = range.start;
        if let Err(index) = work(range) {
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            if failed.is_none_or(|(before, _)| start < before) {
                *failed = Some((start, index));
            }
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), |(_, index)| Err(IndexError::OutOfRange(index)))
}

/// Calls `work` with ranges of positions and the checked indices there, on several threads.
fn for_blocks(
    index: &[i64],
    size: usize,
    grain: usize,
    work: impl Fn(Range<usize>, &[i64]) + Sync,
) -> Result<(), IndexError> {
    for_ranges(index.len(), grain, |range| {
        let mut memory = [const { MaybeUninit::uninit() }; BLOCK];
        for start in range.clone().step_by(BLOCK) {
            let block = start..range.end.min(start + BLOCK);
            let wrapped = checked(&index[block.clone()], size, &mut memory[..block.len()])?;
            work(block, wrapped);
        }
        Ok(())
    })
}

/// Converts negative indices to indices from the start.
///
/// # Panics
/// If the lengths differ.
pub fn wrap(index: &[i64], size: usize, out: &mut [i64]) -> Result<(), IndexError> {
    assert_eq!(index.len(), out.len(), "one result for each index");
    let to = Pointer(out.as_mut_ptr());
    for_blocks(index, size, GRAIN / 8, |range, wrapped| {
        // SAFETY: the range is within `out`, and no other call writes there.
        let out = unsafe { std::slice::from_raw_parts_mut(to.get().add(range.start), range.len()) };
        out.copy_from_slice(wrapped);
    })
}

/// `out[k] = x[index[k]]`.
///
/// # Panics
/// If `out` and `index` differ in length.
pub fn take<T: Copy + Send + Sync>(x: &[T], index: &[i64], out: &mut [T]) -> Result<(), IndexError> {
    assert_eq!(index.len(), out.len(), "one index for each element");
    let to = Pointer(out.as_mut_ptr());
    let size = x.len() as i64;
    // A block at a time would be slower: the CPU waits for elements while it checks the indices after them.
    for_ranges(index.len(), GRAIN / 8, |range| {
        // SAFETY: the range is within `out`, and no other call writes there.
        let out = unsafe { std::slice::from_raw_parts_mut(to.get().add(range.start), range.len()) };
        for (o, i) in out.iter_mut().zip(&index[range]) {
            // SAFETY: it is an element of a slice; it is read once.
            let i = unsafe { ptr::read_volatile(i) };
            let at = from_start(i, size);
            if !(0..size).contains(&at) {
                return Err(i);
            }
            // SAFETY: the index was checked.
            *o = unsafe { *x.get_unchecked(at as usize) };
        }
        Ok(())
    })
}

/// Row `k` of `out` is row `index[k]` of the table.
///
/// # Panics
/// If `out` doesn't hold one row for each index.
pub fn take_rows<T: Copy + Send + Sync>(
    table: ArrayView2<'_, T>,
    index: &[i64],
    out: &mut [T],
) -> Result<(), IndexError> {
    let (size, width) = table.dim();
    assert_eq!(out.len(), index.len() * width, "one index for each row");
    let elements = table.as_slice();
    if let Some(elements) = elements {
        // A row that fits into a register is copied as one value.
        match width {
            1 => return take(elements, index, out),
            2 if 2 * size_of::<T>() <= REGISTER => return take_arrays::<T, 2>(elements, index, out),
            4 if 4 * size_of::<T>() <= REGISTER => return take_arrays::<T, 4>(elements, index, out),
            8 if 8 * size_of::<T>() <= REGISTER => return take_arrays::<T, 8>(elements, index, out),
            16 if 16 * size_of::<T>() <= REGISTER => return take_arrays::<T, 16>(elements, index, out),
            _ => {}
        }
    }
    let to = Pointer(out.as_mut_ptr());
    for_blocks(index, size, (GRAIN / (width * size_of::<T>()).max(1)).max(1), |range, wrapped| {
        // SAFETY: these rows are within `out`, and no other call writes there.
        let rows = unsafe { std::slice::from_raw_parts_mut(to.get().add(range.start * width), range.len() * width) };
        for (row, at) in rows.chunks_exact_mut(width.max(1)).zip(wrapped) {
            let at = *at as usize;
            match elements {
                Some(elements) => row.copy_from_slice(&elements[at * width..][..width]),
                None => row.iter_mut().zip(table.row(at)).for_each(|(o, v)| *o = *v),
            }
        }
    })
}

fn take_arrays<T: Copy + Send + Sync, const N: usize>(
    table: &[T],
    index: &[i64],
    out: &mut [T],
) -> Result<(), IndexError> {
    take(table.as_chunks::<N>().0, index, out.as_chunks_mut::<N>().0)
}

/// Fills `out` with zeros and adds row `k` of `x` to row `index[k]`, in the order of `k`.
///
/// # Panics
/// If `x` doesn't hold one row of `width` for each index, or `out` doesn't hold `size` rows.
pub fn add_rows<T: Machine + Num>(
    x: &[T],
    width: usize,
    index: &[i64],
    size: usize,
    out: &mut [T],
) -> Result<(), IndexError> {
    assert_eq!(x.len(), index.len() * width, "one index for each row");
    assert_eq!(out.len(), size * width, "whole rows");
    let row = width * size_of::<T>();
    if row < WIDE || size_of_val(x) < GRAIN {
        out.fill(T::zero());
        let mut memory = [const { MaybeUninit::uninit() }; BLOCK];
        for (block, index) in index.chunks(BLOCK).enumerate() {
            let wrapped = checked(index, size, &mut memory[..index.len()]).map_err(IndexError::OutOfRange)?;
            let first = block * BLOCK;
            if width == 1 {
                add_elements(&x[first..][..wrapped.len()], wrapped, out);
            } else {
                (first..).zip(wrapped).for_each(|(k, at)| add_row(x, k, width, *at as usize, out));
            }
        }
        return Ok(());
    }
    let mut wrapped = zeros(index.len())?;
    wrap(index, size, &mut wrapped)?;
    // Each part of the table belongs to one thread, which adds the rows for it in order.
    let shift = (PART / row).max(1).ilog2();
    let parts = size.div_ceil(1 << shift);
    let (starts, order) = by_part(&wrapped, shift, parts)?;
    let to = Pointer(out.as_mut_ptr());
    parallel_for(parts, 1, |range| {
        for part in range {
            let first = part << shift;
            let rows = (size - first).min(1 << shift);
            // SAFETY: these rows are within `out` and belong to this part only.
            let out = unsafe { std::slice::from_raw_parts_mut(to.get().add(first * width), rows * width) };
            out.fill(T::zero());
            for k in &order[starts[part]..starts[part + 1]] {
                add_row(x, *k, width, wrapped[*k] as usize - first, out);
            }
        }
    });
    Ok(())
}

/// The positions of the indices, sorted by part of `1 << shift` rows, and the start of each part.
fn by_part(wrapped: &[i64], shift: u32, parts: usize) -> Result<(Vec<usize>, Vec<usize>), TryReserveError> {
    let part = |at: &i64| *at as usize >> shift;
    let mut starts = zeros::<usize>(parts + 1)?;
    wrapped.iter().for_each(|at| starts[part(at) + 1] += 1);
    (0..parts).for_each(|p| starts[p + 1] += starts[p]);
    let (mut next, mut order) = (zeros::<usize>(parts + 1)?, zeros(wrapped.len())?);
    next.copy_from_slice(&starts);
    for (k, at) in wrapped.iter().enumerate() {
        let next = &mut next[part(at)];
        order[*next] = k;
        *next += 1;
    }
    Ok((starts, order))
}

/// Adds row `k` of `x` to row `at`.
fn add_row<T: Num>(x: &[T], k: usize, width: usize, at: usize, out: &mut [T]) {
    out[at * width..][..width].iter_mut().zip(&x[k * width..]).for_each(|(o, v)| *o += *v);
}

/// Rows of one element.
fn add_elements<T: Machine + Num>(x: &[T], wrapped: &[i64], out: &mut [T]) {
    for (v, at) in x.iter().zip(wrapped) {
        out[*at as usize] += *v;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_count_from_either_end() {
        let mut out = [0; 4];
        take(&[1, 2, 3], &[0, -1, 2, -3], &mut out).expect("in range");
        assert_eq!(out, [1, 3, 3, 1]);
        let mut wrapped = [9; 3];
        wrap(&[0, -1, -3], 3, &mut wrapped).expect("in range");
        assert_eq!(wrapped, [0, 2, 0]);
        assert_eq!(wrap(&[0, 3, -4], 3, &mut wrapped), Err(IndexError::OutOfRange(3)));
    }

    #[test]
    fn the_first_index_out_of_range_is_reported() {
        for size in [0, 3] {
            let index: Vec<i64> = (0..100_000).map(|i| if i < 70_000 { 2 * i64::from(size > 0) } else { i }).collect();
            let expected = if size == 0 { 0 } else { 70_000 };
            let refused = || Err(IndexError::OutOfRange(expected));
            let x = vec![1.0; size];
            assert_eq!(take(&x, &index, &mut vec![0.0; index.len()]), refused());
            let rows = vec![0.5; index.len()];
            assert_eq!(add_rows(&rows, 1, &index, size, &mut vec![0.0; size]), refused());
        }
        for extreme in [i64::MIN, i64::MAX, 3, -4] {
            assert_eq!(take(&[1, 2, 3], &[0, extreme, 9], &mut [0; 3]), Err(IndexError::OutOfRange(extreme)));
        }
    }

    #[test]
    fn rows_of_every_width_are_taken_and_added() {
        for width in [0, 1, 2, 3, 4, 8, 16, 33, 128] {
            let table: Vec<u8> = (0..width * 50).map(|i| (i % 251) as u8).collect();
            let index: Vec<i64> = (0..3000).map(|i| i * 7 % 100 - 50).collect();
            let mut out = vec![0; index.len() * width];
            let rows = ArrayView2::from_shape((50, width), &table).expect("as many elements");
            take_rows(rows, &index, &mut out).expect("in range");
            let columns = rows.t().as_standard_layout().into_owned();
            let mut of_columns = vec![0; out.len()];
            take_rows(columns.t(), &index, &mut of_columns).expect("in range");
            assert_eq!(of_columns, out);
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
