//! Products of bfloat16 matrices with AVX512_BF16, whose instruction adds the products of two pairs to a sum of `f32`.
//!
//! A pair of neighbouring numbers along `k` takes the place of one `f32`: the product of an `m × k/2` matrix of pairs and a
//! `k/2 × n` one is computed in the same [tiles](super::tiled) as a product of floats. A matrix whose rows along `k` are contiguous
//! already consists of pairs.

use std::sync::atomic::{AtomicU16, Ordering};

use half::bf16;
use ndarray::{ArrayView2, ArrayViewMut2};

use super::View;
use crate::memory::copy::Pointer;
use crate::memory::zeros;
use crate::runtime::simd::clones;
use crate::runtime::stop::Pace;
use crate::runtime::threads::parallel_for;

/// The fewest rows and columns of a product for which this is faster than a product of floats.
const FEWEST: usize = 8;
/// The fewest pairs for a thread.
const GRAIN: usize = 1 << 15;
/// The least sum of the biased exponents of two factors, so that all their products, and all nonzero sums of these, are normal
/// numbers: they are multiples of 2⁻¹²⁴. The instruction takes subnormal ones for 0.
const LEAST_EXPONENTS: u16 = 144;

/// Whether [`matmul_of_pairs`] computes products of `m × k` and `k × n` at the current SIMD level, and is faster than a product of
/// floats.
pub fn takes_pairs(m: usize, n: usize, k: usize) -> bool {
    is_available() && m.min(n).min(k) >= FEWEST
}

/// Whether there are instructions for pairs at the current SIMD level.
fn is_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::runtime::simd::level() == crate::runtime::simd::Level::Avx512
        && std::is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// `c = a · b`. Sums are `f32`. Returns false without a result if [`takes_pairs`] does, if memory is exhausted, or if a number or a
/// product of two may be so small that the instruction takes it for 0.
///
/// # Panics
/// If the shapes are not `m × k`, `k × n` and `m × n`.
pub fn matmul_of_pairs(a: ArrayView2<'_, bf16>, b: ArrayView2<'_, bf16>, mut c: ArrayViewMut2<'_, f32>) -> bool {
    let ((m, k), n) = (a.dim(), b.ncols());
    assert!(b.nrows() == k && c.dim() == (m, n), "{:?} by {:?} into {:?}", a.dim(), b.dim(), c.dim());
    if !takes_pairs(m, n, k) {
        return false;
    }
    let (a, b, c) = (View::of(&a).cast(), View::of(&b).cast(), View::of_mut(&mut c));
    // SAFETY: sizes and strides are those of borrowed views; the CPU has the instructions.
    unsafe {
        match c.columns != 1 && c.rows == 1 {
            // cᵀ = bᵀ aᵀ
            true => multiply((n, m, k), b.transposed(), a.transposed(), c.transposed()),
            false => multiply((m, n, k), a, b, c),
        }
    }
}

/// # Safety
/// As for [`super::Gemm::multiply`]; the CPU has the instructions.
unsafe fn multiply((m, n, k): (usize, usize, usize), a: View<u16>, b: View<u16>, c: View<f32>) -> bool {
    let pairs = k.div_ceil(2);
    // SAFETY: the caller's contract.
    unsafe {
        // The pairs of `a` are along its rows, those of `b` along its columns.
        let (Some((a, least_of_a)), Some((b, least_of_b))) = (Pairs::of(a.transposed(), k, m), Pairs::of(b, k, n))
        else {
            return false;
        };
        let has_subnormal = least_of_a.min(least_of_b) == 0;
        if has_subnormal || least_of_a + least_of_b < LEAST_EXPONENTS {
            return false;
        }
        #[cfg(target_arch = "x86_64")]
        super::in_polled_parts((m, n, pairs), a.view().transposed(), b.view(), c, super::tiled::multiply_pairs);
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (pairs, c, a.view(), b.view());
    }
    true
}

/// A matrix of pairs of neighbouring rows.
enum Pairs {
    /// In the memory of the matrix.
    Own(View<f32>),
    /// A copy, row-major, with the number of its columns.
    Copied(Vec<u32>, usize),
}

impl Pairs {
    /// The pairs of a matrix of `k` rows and `n` columns, and the least biased exponent of its nonzero numbers. `None` if memory is
    /// exhausted.
    ///
    /// # Safety
    /// The matrix has this size.
    unsafe fn of(matrix: View<u16>, k: usize, n: usize) -> Option<(Pairs, u16)> {
        let is_aligned = matrix.start.addr().is_multiple_of(align_of::<u32>());
        if matrix.rows == 1 && k.is_multiple_of(2) && matrix.columns % 2 == 0 && is_aligned {
            // SAFETY: the caller's contract; columns are contiguous.
            let column = |j: usize| unsafe { std::slice::from_raw_parts(matrix.at(0, j), k) };
            let mut pace = Pace::default();
            let least_of = |j| {
                pace.step(k);
                least(column(j))
            };
            let least = (0..n).map(least_of).min().unwrap_or(u16::MAX);
            let view = View { start: matrix.start.cast(), rows: 1, columns: matrix.columns / 2 };
            return Some((Pairs::Own(view), exponent(least)));
        }
        let mut copy: Vec<u32> = zeros(k.div_ceil(2).checked_mul(n)?).ok()?;
        let to = Pointer(copy.as_mut_ptr());
        let least = AtomicU16::new(u16::MAX);
        parallel_for(k.div_ceil(2), (GRAIN / n).max(1), |rows| {
            for pair in rows {
                // SAFETY: the caller's contract; one task for each row of the copy.
                let least_of_row = unsafe {
                    let to = std::slice::from_raw_parts_mut(to.get().add(pair * n), n);
                    let second = if 2 * pair + 1 < k { Some(matrix.at(2 * pair + 1, 0).cast_const()) } else { None };
                    match matrix.columns {
                        // A constant, so that the loop is vectorized.
                        1 => join(matrix.at(2 * pair, 0), second, 1, to),
                        step => join(matrix.at(2 * pair, 0), second, step, to),
                    }
                };
                least.fetch_min(least_of_row, Ordering::Relaxed);
            }
        });
        Some((Pairs::Copied(copy, n), exponent(least.into_inner())))
    }

    fn view(&self) -> View<f32> {
        match self {
            Pairs::Own(view) => *view,
            Pairs::Copied(copy, n) => View { start: copy.as_ptr().cast_mut().cast(), rows: *n as isize, columns: 1 },
        }
    }
}

/// The magnitude of a bfloat16 by its bits, less 1: the largest number for 0.
#[inline(always)]
fn magnitude(bits: u16) -> u16 {
    (bits & 0x7fff).wrapping_sub(1)
}

/// The biased exponent of a [`magnitude`]; a large one for 0.
fn exponent(magnitude: u16) -> u16 {
    magnitude.saturating_add(1) >> 7
}

clones! {
    /// The least [`magnitude`].
    <[]> fn least(numbers: &[u16]) -> u16 where [] {
        numbers.iter().fold(u16::MAX, |least, bits| least.min(magnitude(*bits)))
    }
}

clones! {
    /// Joins the numbers of two rows; without the second row, with 0. Returns the least [`magnitude`]. The caller ensures that both
    /// rows have as many numbers.
    <[]> fn join(first: *const u16, second: Option<*const u16>, step: isize, to: &mut [u32]) -> u16 where [] {
        let mut least = u16::MAX;
        for (j, to) in to.iter_mut().enumerate() {
            // SAFETY: the rows have this number.
            let (low, high) = unsafe {
                let at = j as isize * step;
                (*first.offset(at), second.map_or(0, |second| *second.offset(at)))
            };
            least = least.min(magnitude(low)).min(magnitude(high));
            *to = u32::from(low) | u32::from(high) << 16;
        }
        least
    }
}
