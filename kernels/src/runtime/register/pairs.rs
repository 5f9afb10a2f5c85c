//! Registers of pairs of bfloat16, which AVX512_BF16 multiplies.

use std::arch::x86_64::*;

use super::{Register, Task};

/// Sums of `f32`, or as many pairs of bfloat16 in their place.
#[derive(Clone, Copy)]
pub(crate) struct Pairs(__m512);

impl Register for Pairs {
    type Element = f32;
    const LANES: usize = <__m512 as Register>::LANES;
    const ROWS: usize = <__m512 as Register>::ROWS;
    const WIDTH: usize = <__m512 as Register>::WIDTH;

    #[target_feature(enable = "avx512bf16,avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
    unsafe fn run<T: Task>(task: T) -> T::Output {
        // SAFETY: by contract.
        unsafe { task.run() }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: by contract.
        Pairs(unsafe { <__m512 as Register>::zero() })
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> Self {
        // SAFETY: by contract.
        Pairs(unsafe { <__m512 as Register>::splat(from) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: by contract.
        Pairs(unsafe { <__m512 as Register>::load(from) })
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        // SAFETY: by contract.
        Pairs(unsafe { <__m512 as Register>::load_part(from, n) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: by contract.
        unsafe { self.0.store(to) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        // SAFETY: by contract.
        unsafe { self.0.store_part(to, n) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: by contract.
        Pairs(unsafe { self.0.plus(other.0) })
    }

    /// Adds the products of both numbers of each pair.
    #[inline(always)]
    unsafe fn plus_product(self, x: Self, y: Self) -> Self {
        // SAFETY: by contract; registers of pairs have any bits.
        unsafe {
            let bits = |x: Pairs| std::mem::transmute::<__m512, __m512bh>(x.0);
            Pairs(_mm512_dpbf16_ps(self.0, bits(x), bits(y)))
        }
    }

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_step: isize, to: *mut f32, to_step: usize) {
        // SAFETY: by contract.
        unsafe { <__m512 as Register>::transpose(from, from_step, to, to_step) }
    }
}
