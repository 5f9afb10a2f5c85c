//! Registers of AVX2: what tiles and rows are computed in.

use std::arch::x86_64::*;

use crate::cast::Cast;
use crate::scalar::{Float, Machine};

/// A register of floats.
///
/// Its functions are inlined into functions that are compiled for AVX2 and FMA.
///
/// # Safety
/// Of every function: the CPU has AVX2 and FMA, and memory holds as many elements as are read or written.
pub(crate) trait Register: Copy {
    /// What it holds [`LANES`](Register::LANES) of.
    type Element: Float + Machine + Cast<Self::Element>;
    /// How many elements it holds.
    const LANES: usize;
    /// Zeros.
    unsafe fn zero() -> Self;
    /// One element in every lane.
    unsafe fn splat(from: *const Self::Element) -> Self;
    /// Neighbouring elements.
    unsafe fn load(from: *const Self::Element) -> Self;
    /// Into neighbouring elements.
    unsafe fn store(self, to: *mut Self::Element);
    /// `self + other`.
    unsafe fn plus(self, other: Self) -> Self;
    /// `self + x · y`, rounded once.
    unsafe fn plus_product(self, x: Self, y: Self) -> Self;
    /// The lanes' sum.
    #[inline(always)]
    unsafe fn sum(self) -> Self::Element {
        let mut lanes = [Self::Element::default(); 8];
        // SAFETY: no register has more lanes.
        unsafe { self.store(lanes.as_mut_ptr()) };
        lanes[..Self::LANES].iter().fold(Self::Element::default(), |sum, x| sum + *x)
    }
    /// Copies a square of as many rows as lanes, each `from_step` after the one before, as its columns.
    unsafe fn transpose(from: *const Self::Element, from_step: isize, to: *mut Self::Element, to_step: usize);
}

macro_rules! register {
    ($register:ty, $element:ty, $lanes:literal, $zero:ident $splat:ident $load:ident $store:ident $add:ident $fma:ident) => {
        type Element = $element;
        const LANES: usize = $lanes;

        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: by contract.
            unsafe { $zero() }
        }

        #[inline(always)]
        unsafe fn splat(from: *const $element) -> Self {
            // SAFETY: by contract.
            unsafe { $splat(&*from) }
        }

        #[inline(always)]
        unsafe fn load(from: *const $element) -> Self {
            // SAFETY: by contract.
            unsafe { $load(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut $element) {
            // SAFETY: by contract.
            unsafe { $store(to, self) }
        }

        #[inline(always)]
        unsafe fn plus(self, other: Self) -> Self {
            // SAFETY: by contract.
            unsafe { $add(self, other) }
        }

        #[inline(always)]
        unsafe fn plus_product(self, x: Self, y: Self) -> Self {
            // SAFETY: by contract.
            unsafe { $fma(x, y, self) }
        }
    };
}

impl Register for __m256 {
    register! { __m256, f32, 8, _mm256_setzero_ps _mm256_broadcast_ss _mm256_loadu_ps _mm256_storeu_ps _mm256_add_ps _mm256_fmadd_ps }

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_step: isize, to: *mut f32, to_step: usize) {
        // SAFETY: by contract.
        unsafe {
            // Rows i and i + 4 side by side, so that nothing has to cross the middle of a register later.
            let pair = |i: isize, column: usize| {
                let low = _mm_loadu_ps(from.offset(i * from_step).add(column));
                _mm256_insertf128_ps::<1>(
                    _mm256_castps128_ps256(low),
                    _mm_loadu_ps(from.offset((i + 4) * from_step).add(column)),
                )
            };
            for half in [0, 4] {
                let (r0, r1, r2, r3) = (pair(0, half), pair(1, half), pair(2, half), pair(3, half));
                let (low01, high01) = (_mm256_unpacklo_ps(r0, r1), _mm256_unpackhi_ps(r0, r1));
                let (low23, high23) = (_mm256_unpacklo_ps(r2, r3), _mm256_unpackhi_ps(r2, r3));
                let to = to.add(half * to_step);
                _mm256_storeu_ps(to, _mm256_shuffle_ps::<0x44>(low01, low23));
                _mm256_storeu_ps(to.add(to_step), _mm256_shuffle_ps::<0xee>(low01, low23));
                _mm256_storeu_ps(to.add(2 * to_step), _mm256_shuffle_ps::<0x44>(high01, high23));
                _mm256_storeu_ps(to.add(3 * to_step), _mm256_shuffle_ps::<0xee>(high01, high23));
            }
        }
    }
}

impl Register for __m256d {
    register! { __m256d, f64, 4, _mm256_setzero_pd _mm256_broadcast_sd _mm256_loadu_pd _mm256_storeu_pd _mm256_add_pd _mm256_fmadd_pd }

    #[inline(always)]
    unsafe fn transpose(from: *const f64, from_step: isize, to: *mut f64, to_step: usize) {
        // SAFETY: by contract.
        unsafe {
            let pair = |i: isize, column: usize| {
                let low = _mm_loadu_pd(from.offset(i * from_step).add(column));
                _mm256_insertf128_pd::<1>(
                    _mm256_castpd128_pd256(low),
                    _mm_loadu_pd(from.offset((i + 2) * from_step).add(column)),
                )
            };
            for half in [0, 2] {
                let (r0, r1) = (pair(0, half), pair(1, half));
                let to = to.add(half * to_step);
                _mm256_storeu_pd(to, _mm256_unpacklo_pd(r0, r1));
                _mm256_storeu_pd(to.add(to_step), _mm256_unpackhi_pd(r0, r1));
            }
        }
    }
}
