//! Gathers elements and rows from given positions, and adds rows at given positions.
//!
//! Negative positions count from the end; −1 is the last one. A position that is out of range is an error, which
//! reports the first of them.
//!
//! Other threads may write to the memory of the positions. Each position is therefore read once: a block of positions
//! is copied to private memory and checked there, and only the checked copy is used.

use std::collections::TryReserveError;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ndarray::ArrayView2;

use crate::copy::Pointer;
use crate::scalar::{Machine, Num};
use crate::simd::clones;
use crate::threads::parallel_for;

/// The minimum number of bytes per thread.
const GRAIN: usize = 64 * 1024;
/// The number of positions that are checked together: they are still in the cache when they are used.
const BLOCK: usize = 1024;
/// The size in bytes of a vector register that every CPU has.
const REGISTER: usize = 16;
/// Rows with fewer bytes than this are added by one thread.
const WIDE: usize = 64;
/// The size in bytes of a part of a table that one thread adds to: its zeros are still in the cache when they are added
/// to.
const PART: usize = 128 * 1024;

/// The reason why positions can't be used.
#[derive(Debug, PartialEq, Eq)]
pub enum Unusable {
    /// This position is out of range.
    OutOfRange(i64),
    /// There is not enough memory to store the positions.
    OutOfMemory(TryReserveError),
}

impl From<TryReserveError> for Unusable {
    fn from(error: TryReserveError) -> Unusable {
        Unusable::OutOfMemory(error)
    }
}

clones! {
    /// Reads positions and converts negative ones. Returns true if all of them are then in `0..size`.
    <[]> fn read(index: &[i64], size: i64, places: &mut [MaybeUninit<i64>]) -> bool where [] {
        let mut in_range = true;
        for (place, i) in places.iter_mut().zip(index) {
            let from_front = *i + (size & (*i >> 63));
            in_range &= (from_front as u64) < size as u64;
            *place = MaybeUninit::new(from_front);
        }
        in_range
    }
}

/// Reads as many positions as there are places. All returned places are in `0..size`.
#[inline]
fn checked<'a>(index: &[i64], size: usize, places: &'a mut [MaybeUninit<i64>]) -> Result<&'a [i64], i64> {
    assert_eq!(index.len(), places.len(), "one place for each position");
    let in_range = read(index, size as i64, places);
    // SAFETY: `read` has written all of them.
    let places = unsafe { std::slice::from_raw_parts(places.as_ptr().cast::<i64>(), places.len()) };
    if in_range { Ok(places) } else { Err(first_outside(places, size as i64)) }
}

/// The first position that is out of range, with its original value.
#[cold]
fn first_outside(places: &[i64], size: i64) -> i64 {
    let outside = places.iter().copied().find(|place| !(0..size).contains(place)).unwrap_or_default();
    if outside < 0 { outside - size } else { outside }
}

/// Calls `work` with ranges of positions and their checked places, on several threads.
fn for_checked(
    index: &[i64],
    size: usize,
    grain: usize,
    work: impl Fn(Range<usize>, &[i64]) + Sync,
) -> Result<(), Unusable> {
    let failed = Mutex::new(None::<(usize, i64)>);
    parallel_for(index.len(), grain, |range| {
        let mut memory = [const { MaybeUninit::uninit() }; BLOCK];
        for start in range.clone().step_by(BLOCK) {
            let block = start..range.end.min(start + BLOCK);
            match checked(&index[block.clone()], size, &mut memory[..block.len()]) {
                Ok(places) => work(block, places),
                Err(position) => {
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    let is_first = failed.is_none_or(|(before, _)| start < before);
                    return if is_first {
                        *failed = Some((start, position))
                    };
                }
            }
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), |(_, position)| Err(Unusable::OutOfRange(position)))
}

/// Converts negative positions to positions from the start.
///
/// # Panics
/// If the lengths differ.
pub fn from_front(index: &[i64], size: usize, out: &mut [i64]) -> Result<(), Unusable> {
    assert_eq!(index.len(), out.len(), "one place for each position");
    let to = Pointer(out.as_mut_ptr());
    for_checked(index, size, GRAIN / 8, |range, places| {
        // SAFETY: the range is within `out`, and no other call writes there.
        let out = unsafe { std::slice::from_raw_parts_mut(to.get().add(range.start), range.len()) };
        out.copy_from_slice(places);
    })
}

/// `out[k] = x[index[k]]`.
///
/// # Panics
/// If `out` and `index` differ in length.
pub fn take<T: Copy + Send + Sync>(x: &[T], index: &[i64], out: &mut [T]) -> Result<(), Unusable> {
    assert_eq!(index.len(), out.len(), "one position for each element");
    let to = Pointer(out.as_mut_ptr());
    for_checked(index, x.len(), GRAIN / 8, |range, places| {
        // SAFETY: the range is within `out`, and no other call writes there.
        let out = unsafe { std::slice::from_raw_parts_mut(to.get().add(range.start), range.len()) };
        for (o, place) in out.iter_mut().zip(places) {
            // SAFETY: the place was checked, and is private.
            *o = unsafe { *x.get_unchecked(*place as usize) };
        }
    })
}

/// Row `k` of `out` is row `index[k]` of the table.
///
/// # Panics
/// If `out` doesn't hold one row for each position.
pub fn take_rows<T: Copy + Send + Sync>(
    table: ArrayView2<'_, T>,
    index: &[i64],
    out: &mut [T],
) -> Result<(), Unusable> {
    let (size, width) = table.dim();
    assert_eq!(out.len(), index.len() * width, "one position for each row");
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
    for_checked(index, size, (GRAIN / (width * size_of::<T>()).max(1)).max(1), |range, places| {
        // SAFETY: these rows are within `out`, and no other call writes there.
        let rows = unsafe { std::slice::from_raw_parts_mut(to.get().add(range.start * width), range.len() * width) };
        for (row, place) in rows.chunks_exact_mut(width.max(1)).zip(places) {
            let place = *place as usize;
            match elements {
                Some(elements) => row.copy_from_slice(&elements[place * width..][..width]),
                None => row.iter_mut().zip(table.row(place)).for_each(|(o, v)| *o = *v),
            }
        }
    })
}

fn take_arrays<T: Copy + Send + Sync, const N: usize>(
    table: &[T],
    index: &[i64],
    out: &mut [T],
) -> Result<(), Unusable> {
    take(table.as_chunks::<N>().0, index, out.as_chunks_mut::<N>().0)
}

/// Fills `out` with zeros and adds row `k` of `x` to row `index[k]`, in the order of `k`.
///
/// # Panics
/// If `x` doesn't hold one row of `width` for each position, or `out` doesn't hold `size` rows.
pub fn add_rows<T: Machine + Num>(
    x: &[T],
    width: usize,
    index: &[i64],
    size: usize,
    out: &mut [T],
) -> Result<(), Unusable> {
    assert_eq!(x.len(), index.len() * width, "one position for each row");
    assert_eq!(out.len(), size * width, "whole rows");
    let row = width * size_of::<T>();
    if row < WIDE || size_of_val(x) < GRAIN {
        out.fill(T::zero());
        let mut memory = [const { MaybeUninit::uninit() }; BLOCK];
        for (block, index) in index.chunks(BLOCK).enumerate() {
            let places = checked(index, size, &mut memory[..index.len()]).map_err(Unusable::OutOfRange)?;
            let first = block * BLOCK;
            if width == 1 {
                add_elements(&x[first..][..places.len()], places, out);
            } else {
                (first..).zip(places).for_each(|(k, place)| add_row(x, k, width, *place as usize, out));
            }
        }
        return Ok(());
    }
    let mut places = buffer(index.len())?;
    from_front(index, size, &mut places)?;
    // Each part of the table belongs to one thread, which adds the rows for it in order.
    let shift = (PART / row).max(1).ilog2();
    let parts = size.div_ceil(1 << shift);
    let (starts, order) = by_part(&places, shift, parts)?;
    let to = Pointer(out.as_mut_ptr());
    parallel_for(parts, 1, |range| {
        for part in range {
            let first = part << shift;
            let rows = (size - first).min(1 << shift);
            // SAFETY: these rows are within `out` and belong to this part only.
            let out = unsafe { std::slice::from_raw_parts_mut(to.get().add(first * width), rows * width) };
            out.fill(T::zero());
            for k in &order[starts[part]..starts[part + 1]] {
                add_row(x, *k, width, places[*k] as usize - first, out);
            }
        }
    });
    Ok(())
}

/// A vector of zeros. Its size depends on a tensor's, so the allocation may fail.
fn buffer<A: Copy + Default>(n: usize) -> Result<Vec<A>, TryReserveError> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(n)?;
    buffer.resize(n, A::default());
    Ok(buffer)
}

/// The indices of the places, sorted by part of `1 << shift` rows, and the start of each part.
fn by_part(places: &[i64], shift: u32, parts: usize) -> Result<(Vec<usize>, Vec<usize>), TryReserveError> {
    let part = |place: &i64| *place as usize >> shift;
    let mut starts = buffer::<usize>(parts + 1)?;
    places.iter().for_each(|place| starts[part(place) + 1] += 1);
    (0..parts).for_each(|p| starts[p + 1] += starts[p]);
    let (mut next, mut order) = (buffer::<usize>(parts + 1)?, buffer(places.len())?);
    next.copy_from_slice(&starts);
    for (k, place) in places.iter().enumerate() {
        let next = &mut next[part(place)];
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
fn add_elements<T: Machine + Num>(x: &[T], places: &[i64], out: &mut [T]) {
    for (v, place) in x.iter().zip(places) {
        out[*place as usize] += *v;
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
        assert_eq!(from_front(&[0, 3, -4], 3, &mut places), Err(Unusable::OutOfRange(3)));
    }

    #[test]
    fn the_first_position_out_of_range_is_told() {
        for size in [0, 3] {
            let index: Vec<i64> = (0..100_000).map(|i| if i < 70_000 { 2 * i64::from(size > 0) } else { i }).collect();
            let expected = if size == 0 { 0 } else { 70_000 };
            let refused = || Err(Unusable::OutOfRange(expected));
            let x = vec![1.0; size];
            assert_eq!(take(&x, &index, &mut vec![0.0; index.len()]), refused());
            let rows = vec![0.5; index.len()];
            assert_eq!(add_rows(&rows, 1, &index, size, &mut vec![0.0; size]), refused());
        }
        for extreme in [i64::MIN, i64::MAX, 3, -4] {
            assert_eq!(take(&[1, 2, 3], &[0, extreme, 9], &mut [0; 3]), Err(Unusable::OutOfRange(extreme)));
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
