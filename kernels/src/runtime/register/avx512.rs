//! Registers of AVX-512.

use std::arch::x86_64::*;

use super::{Register, Task, register};

impl Register for __m512 {
    register! {
        __m512, f32, 16, tiles of 12 by 2, "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma",
        _mm512_setzero_ps, |from: *const f32| _mm512_set1_ps(*from), _mm512_loadu_ps _mm512_storeu_ps _mm512_add_ps _mm512_fmadd_ps
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        // SAFETY: by contract.
        unsafe { _mm512_maskz_loadu_ps(((1_u32 << n) - 1) as __mmask16, from) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        // SAFETY: by contract.
        unsafe { _mm512_mask_storeu_ps(to, ((1_u32 << n) - 1) as __mmask16, self) }
    }

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_step: isize, to: *mut f32, to_step: usize) {
        // SAFETY: by contract.
        unsafe {
            // Rows i, i + 4, i + 8 and i + 12 in one register, so that no later step crosses the quarters of a
            // register.
            let four = |i: isize, column: usize| {
                let part = |row: isize| _mm_loadu_ps(from.offset(row * from_step).add(column));
                let low = _mm512_insertf32x4::<1>(_mm512_castps128_ps512(part(i)), part(i + 4));
                _mm512_insertf32x4::<3>(_mm512_insertf32x4::<2>(low, part(i + 8)), part(i + 12))
            };
            for column in [0, 4, 8, 12] {
                let (r0, r1, r2, r3) = (four(0, column), four(1, column), four(2, column), four(3, column));
                let (low01, high01) = (_mm512_unpacklo_ps(r0, r1), _mm512_unpackhi_ps(r0, r1));
                let (low23, high23) = (_mm512_unpacklo_ps(r2, r3), _mm512_unpackhi_ps(r2, r3));
                let to = to.add(column * to_step);
                _mm512_storeu_ps(to, _mm512_shuffle_ps::<0x44>(low01, low23));
                _mm512_storeu_ps(to.add(to_step), _mm512_shuffle_ps::<0xee>(low01, low23));
                _mm512_storeu_ps(to.add(2 * to_step), _mm512_shuffle_ps::<0x44>(high01, high23));
                _mm512_storeu_ps(to.add(3 * to_step), _mm512_shuffle_ps::<0xee>(high01, high23));
            }
        }
    }
}

impl Register for __m512d {
    register! {
        __m512d, f64, 8, tiles of 12 by 2, "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma",
        _mm512_setzero_pd, |from: *const f64| _mm512_set1_pd(*from), _mm512_loadu_pd _mm512_storeu_pd _mm512_add_pd _mm512_fmadd_pd
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f64, n: usize) -> Self {
        // SAFETY: by contract.
        unsafe { _mm512_maskz_loadu_pd(((1_u32 << n) - 1) as __mmask8, from) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f64, n: usize) {
        // SAFETY: by contract.
        unsafe { _mm512_mask_storeu_pd(to, ((1_u32 << n) - 1) as __mmask8, self) }
    }

    #[inline(always)]
    unsafe fn transpose(from: *const f64, from_step: isize, to: *mut f64, to_step: usize) {
        // SAFETY: by contract.
        unsafe {
            let four = |i: isize, column: usize| {
                let part = |row: isize| _mm_loadu_pd(from.offset(row * from_step).add(column));
                let low = _mm512_insertf64x2::<1>(_mm512_castpd128_pd512(part(i)), part(i + 2));
                _mm512_insertf64x2::<3>(_mm512_insertf64x2::<2>(low, part(i + 4)), part(i + 6))
            };
            for column in [0, 2, 4, 6] {
                let (r0, r1) = (four(0, column), four(1, column));
                let to = to.add(column * to_step);
                _mm512_storeu_pd(to, _mm512_unpacklo_pd(r0, r1));
                _mm512_storeu_pd(to.add(to_step), _mm512_unpackhi_pd(r0, r1));
            }
        }
    }
}
