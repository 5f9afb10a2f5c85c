//! Products of floats in registers.
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

use super::View;
use crate::scalar::{Float, Machine};
use register::Register;

/// `c = a · b`, or `c += a · b`, on the caller's thread `alone` or on several.
///
/// # Safety
/// As for [`matmul`](super::matmul), with at least one element in each matrix.
pub(super) unsafe fn multiply<T: Machine + Float>(
    size: (usize, usize, usize),
    a: View<T>,
    b: View<T>,
    c: View<T>,
    add: bool,
    alone: bool,
) {
    macro_rules! in_registers {
        ($float:ty: $($level:ident => $vector:ident),*; $least:ty) => {
            if TypeId::of::<T>() == TypeId::of::<$float>() {
                let (a, b, c) = (a.cast(), b.cast(), c.cast());
                // SAFETY: the caller's promise, T is this very type, and a level is in use only if the CPU has it.
                return unsafe {
                    match crate::simd::level() {
                        $(
                            #[cfg(target_arch = "x86_64")]
                            crate::simd::Level::$level => {
                                multiply_in::<std::arch::x86_64::$vector>(size, a, b, c, add, alone)
                            }
                        )*
                        _ => multiply_in::<$least>(size, a, b, c, add, alone),
                    }
                };
            }
        };
    }
    #[cfg(not(target_arch = "aarch64"))]
    use register::Portable;
    #[cfg(target_arch = "aarch64")]
    use std::arch::aarch64::{float32x4_t, float64x2_t};
    #[cfg(not(target_arch = "aarch64"))]
    in_registers! { f32: Avx2 => __m256, Avx512 => __m512; Portable<f32> }
    #[cfg(not(target_arch = "aarch64"))]
    in_registers! { f64: Avx2 => __m256d, Avx512 => __m512d; Portable<f64> }
    #[cfg(target_arch = "aarch64")]
    in_registers! { f32: ; float32x4_t }
    #[cfg(target_arch = "aarch64")]
    in_registers! { f64: ; float64x2_t }
    unreachable!("floats are computed in f32 or f64")
}

/// # Safety
/// As for [`multiply`], on a CPU with the instructions of `R`.
unsafe fn multiply_in<R: Register>(
    (m, n, k): (usize, usize, usize),
    a: View<R::Element>,
    b: View<R::Element>,
    c: View<R::Element>,
    add: bool,
    alone: bool,
) {
    let is_vector = |n: usize, matrix: View<_>, step: isize| {
        n == 1 && !alone && !add && (matrix.columns == 1 || matrix.rows == 1) && (step == 1 || k <= vector::MOST)
    };
    // SAFETY: the caller's promise; a row is the column of cᵀ = bᵀ aᵀ.
    unsafe {
        if is_vector(n, a, b.rows) {
            vector::multiply::<R>((m, k), a, (b.start, b.rows), (c.start, c.rows));
        } else if is_vector(m, b, a.columns) {
            vector::multiply::<R>((n, k), b.transposed(), (a.start, a.columns), (c.start, c.columns));
        } else if !alone && !add && vector::is_few((m, n, k), &a, &b, &c) {
            vector::multiply_few::<R>((m, n, k), a, b, c);
        } else {
            blocks::multiply::<R>((m, n, k), a, b, c, add, alone);
        }
    }
}
