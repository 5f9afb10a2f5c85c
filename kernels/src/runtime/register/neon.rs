//! Registers of NEON, which every aarch64 CPU has, with fused products.

use std::arch::aarch64::*;

use super::{Register, Task, register};

/// The functions of a [`Register`] that load and store parts.
macro_rules! parts {
    ($element:ty, $lanes:literal) => {
        #[inline(always)]
        unsafe fn load_part(from: *const $element, n: usize) -> Self {
            let mut lanes = [0.0; $lanes];
            // SAFETY: by contract; n is at most the number of lanes.
            unsafe {
                lanes.as_mut_ptr().copy_from_nonoverlapping(from, n);
                Self::load(lanes.as_ptr())
            }
        }

        #[inline(always)]
        unsafe fn store_part(self, to: *mut $element, n: usize) {
            let mut lanes = [0.0; $lanes];
            // SAFETY: by contract; n is at most the number of lanes.
            unsafe {
                self.store(lanes.as_mut_ptr());
                to.copy_from_nonoverlapping(lanes.as_ptr(), n);
            }
        }
    };
}

#[inline(always)]
unsafe fn fused_f32(x: float32x4_t, y: float32x4_t, sum: float32x4_t) -> float32x4_t {
    // SAFETY: every CPU of the target has the instruction.
    unsafe { vfmaq_f32(sum, x, y) }
}

#[inline(always)]
unsafe fn fused_f64(x: float64x2_t, y: float64x2_t, sum: float64x2_t) -> float64x2_t {
    // SAFETY: every CPU of the target has the instruction.
    unsafe { vfmaq_f64(sum, x, y) }
}

impl Register for float32x4_t {
    register! {
        float32x4_t, f32, 4, tiles of 12 by 2, "neon",
        || vdupq_n_f32(0.0), |from: *const f32| vdupq_n_f32(*from), vld1q_f32 vst1q_f32 vaddq_f32 fused_f32
    }
    parts! { f32, 4 }

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_step: isize, to: *mut f32, to_step: usize) {
        // SAFETY: by contract.
        unsafe {
            let row = |i: isize| vld1q_f32(from.offset(i * from_step));
            let (even01, odd01) = (vtrn1q_f32(row(0), row(1)), vtrn2q_f32(row(0), row(1)));
            let (even23, odd23) = (vtrn1q_f32(row(2), row(3)), vtrn2q_f32(row(2), row(3)));
            let low = |x, y| vcombine_f32(vget_low_f32(x), vget_low_f32(y));
            let high = |x, y| vcombine_f32(vget_high_f32(x), vget_high_f32(y));
            vst1q_f32(to, low(even01, even23));
            vst1q_f32(to.add(to_step), low(odd01, odd23));
            vst1q_f32(to.add(2 * to_step), high(even01, even23));
            vst1q_f32(to.add(3 * to_step), high(odd01, odd23));
        }
    }
}

impl Register for float64x2_t {
    register! {
        float64x2_t, f64, 2, tiles of 12 by 2, "neon",
        || vdupq_n_f64(0.0), |from: *const f64| vdupq_n_f64(*from), vld1q_f64 vst1q_f64 vaddq_f64 fused_f64
    }
    parts! { f64, 2 }

    #[inline(always)]
    unsafe fn transpose(from: *const f64, from_step: isize, to: *mut f64, to_step: usize) {
        // SAFETY: by contract.
        unsafe {
            let (r0, r1) = (vld1q_f64(from), vld1q_f64(from.offset(from_step)));
            vst1q_f64(to, vtrn1q_f64(r0, r1));
            vst1q_f64(to.add(to_step), vtrn2q_f64(r0, r1));
        }
    }
}
