//! Products of floats in registers of AVX2.
//!
//! [`tile`] is the innermost loop, [`pack`] brings matrices in the order that it reads them, [`blocks`] cuts a product into what
//! the caches hold and threads share; [`vector`] is for matrices of one row or column.

mod blocks;
mod memory;
mod pack;
mod register;
mod tile;
mod vector;

use std::any::TypeId;
use std::arch::x86_64::{__m256, __m256d};

use super::View;
use crate::simd::{Level, level};
use register::Register;

/// `c = a · b`, or `c += a · b`, on the caller's thread `alone` or on several (then without `add`), and whether it was done: `T` must be a
/// float and the level AVX2, or a higher one for a vector.
///
/// # Safety
/// As for [`matmul`](super::matmul), with at least one element in each matrix.
pub(super) unsafe fn multiply<T: Copy + 'static>(
    size: (usize, usize, usize),
    a: View<T>,
    b: View<T>,
    c: View<T>,
    add: bool,
    alone: bool,
) -> bool {
    if level() < Level::Avx2 {
        return false;
    }
    // SAFETY: the caller's promise, T is this very type, and a level is in use only if the CPU has it.
    unsafe {
        if TypeId::of::<T>() == TypeId::of::<f32>() {
            multiply_in::<__m256>(size, a.cast(), b.cast(), c.cast(), add, alone)
        } else if TypeId::of::<T>() == TypeId::of::<f64>() {
            multiply_in::<__m256d>(size, a.cast(), b.cast(), c.cast(), add, alone)
        } else {
            false
        }
    }
}

/// # Safety
/// As for [`multiply`], on a CPU with AVX2 and FMA.
unsafe fn multiply_in<R: Register>(
    (m, n, k): (usize, usize, usize),
    a: View<R::Element>,
    b: View<R::Element>,
    c: View<R::Element>,
    add: bool,
    alone: bool,
) -> bool {
    let is_vector = |n: usize, matrix: View<_>, step: isize| {
        n == 1 && !alone && (matrix.columns == 1 || matrix.rows == 1) && (step == 1 || k <= vector::MOST)
    };
    // SAFETY: the caller's promise; a row is the column of cᵀ = bᵀ aᵀ.
    unsafe {
        if is_vector(n, a, b.rows) {
            vector::multiply::<R>((m, k), a, (b.start, b.rows), (c.start, c.rows));
        } else if is_vector(m, b, a.columns) {
            vector::multiply::<R>((n, k), b.transposed(), (a.start, a.columns), (c.start, c.columns));
        } else if !alone && vector::is_few((m, n, k), &a, &b, &c) {
            vector::multiply_few::<R>((m, n, k), a, b, c);
        } else if level() == Level::Avx2 {
            blocks::multiply::<R>((m, n, k), a, b, c, add, alone);
        } else {
            return false;
        }
    }
    true
}
