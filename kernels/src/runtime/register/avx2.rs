//! Registers of AVX2.

use std::arch::x86_64::*;

use super::{Register, Task, register};

/// Ones in the first lanes of 32 bits, then zeros: a window of it is a mask.
const MASK: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// The mask of the first `n` of 8 lanes.
#[inline(always)]
unsafe fn mask32(n: usize) -> __m256i {
    // SAFETY: n is at most 8.
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(8 - n).cast()) }
}

/// The mask of the first `n` of 4 lanes.
#[inline(always)]
unsafe fn mask64(n: usize) -> __m256i {
    // SAFETY: n is at most 4.
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(8 - 2 * n).cast()) }
}

impl Register for __m256 {
    register! {
        __m256, f32, 8, tiles of 6 by 2, "avx2,fma",
        _mm256_setzero_ps, |from: *const f32| _mm256_broadcast_ss(&*from), _mm256_loadu_ps _mm256_storeu_ps _mm256_add_ps _mm256_fmadd_ps
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        // SAFETY: by contract.
        unsafe { _mm256_maskload_ps(from, mask32(n)) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        // SAFETY: by contract.
        unsafe { _mm256_maskstore_ps(to, mask32(n), self) }
    }

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_step: isize, to: *mut f32, to_step: usize) {
        // SAFETY: by contract.
        unsafe {
            // Rows i and i + 4 in one register, so that no later step crosses the halves of a register.
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
    register! {
        __m256d, f64, 4, tiles of 6 by 2, "avx2,fma",
        _mm256_setzero_pd, |from: *const f64| _mm256_broadcast_sd(&*from), _mm256_loadu_pd _mm256_storeu_pd _mm256_add_pd _mm256_fmadd_pd
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f64, n: usize) -> Self {
        // SAFETY: by contract.
        unsafe { _mm256_maskload_pd(from, mask64(n)) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f64, n: usize) {
        // SAFETY: by contract.
        unsafe { _mm256_maskstore_pd(to, mask64(n), self) }
    }

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
