//! Memory that is aligned to cache lines, so that no vector in it crosses a line boundary.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::runtime::stop::vec_for;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Line {
    _bytes: [u8; Line::BYTES],
}

impl Line {
    /// Its size.
    pub const BYTES: usize = 64;
    /// A line of zeros.
    pub const ZERO: Line = Line { _bytes: [0; Line::BYTES] };

    /// The number of elements of a type in a line.
    #[cfg(feature = "engine")]
    pub(crate) const fn len<T>() -> usize {
        Line::BYTES / size_of::<T>()
    }
}

/// A value that is aligned to a cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Aligned<T>(pub T);

impl<T> Deref for Aligned<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// A slice on the heap that is aligned to a cache line.
pub struct Lines<T> {
    memory: Vec<Line>,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Copy> Lines<T> {
    /// `n` equal elements. If memory is exhausted, the computation [stops](crate::runtime::stop).
    pub fn filled(value: T, n: usize) -> Self {
        const { assert!(align_of::<T>() <= Line::BYTES) };
        let lines = n.saturating_mul(size_of::<T>()).div_ceil(Line::BYTES);
        let mut memory: Vec<Line> = vec_for(lines);
        let start = memory.as_mut_ptr().cast::<T>();
        for i in 0..n {
            // SAFETY: the capacity of the vector has room for n elements.
            unsafe { start.add(i).write(value) };
        }
        Lines { memory, len: n, elements: PhantomData }
    }
}

impl<T: Copy> Deref for Lines<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `filled` wrote `len` elements.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.len) }
    }
}

impl<T: Copy> DerefMut for Lines<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_begin_at_a_line_and_hold_their_elements() {
        for n in [0, 1, 15, 16, 17, 1000] {
            let mut x = Lines::filled(0.5f32, n);
            assert_eq!(x.len(), n);
            assert!(x.as_ptr().addr().is_multiple_of(Line::BYTES) && x.iter().all(|x| *x == 0.5));
            x.iter_mut().for_each(|x| *x += 1.0);
            assert_eq!(x.iter().sum::<f32>(), 1.5 * n as f32);
        }
    }
}
