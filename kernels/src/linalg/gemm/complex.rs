//! Products of complex matrices, computed as products of real matrices.
//!
//! A row of complex numbers is a row of real numbers: `re, im, re, im, …`. Write `b` as a real matrix with twice as
//! many rows and columns, in which `x + iy` becomes
//!
//! ```text
//!  x  y
//! −y  x
//! ```
//!
//! The real product of `a` and this matrix is the complex product.

use num_complex::Complex;

use super::tiled::Product;
use super::{View, zeros};
use crate::number::Cast;
use crate::number::scalar::{Float, Machine, Num};
use crate::runtime::register::{Tiled, in_registers};
use crate::runtime::stop::poll;

/// The size in bytes of the part of `b`, as real numbers, that is multiplied at a time; and of the part of `a`, if it is copied.
const BLOCK: usize = 4 << 20;
/// The least number of columns of `a` that are copied at a time.
const DEPTH: usize = 64;

/// `c = a · b`. Returns false if memory is exhausted.
///
/// # Safety
/// As for `Gemm::multiply`, with at least one element in each matrix.
pub(super) unsafe fn multiply<T: Tiled>(
    (m, n, k): (usize, usize, usize),
    a: View<Complex<T>>,
    b: View<Complex<T>>,
    c: View<Complex<T>>,
) -> bool
where
    Complex<T>: Machine + Num + Cast<Complex<T>>,
{
    // The rows of `a` and `c` must be contiguous. The product is transposed if that makes more of them contiguous.
    let contiguous = |a: isize, c: isize| usize::from(a == 1) + usize::from(c == 1);
    if contiguous(a.columns, c.columns) < contiguous(b.rows, c.rows) {
        // SAFETY: cᵀ = bᵀ aᵀ.
        return unsafe { multiply((n, m, k), b.transposed(), a.transposed(), c.transposed()) };
    }
    let (own_a, own_c) = (a.columns != 1 && k > 1, c.columns != 1 && n > 1);
    let most = |numbers: usize| BLOCK / numbers.saturating_mul(size_of::<T>());
    let rows = most(n.saturating_mul(4)).clamp(1, k);
    let rows = if own_a { rows.min(most(m.saturating_mul(2)).max(DEPTH)) } else { rows };
    let copies = (
        zeros::<Complex<T>>(if own_a { m } else { 0 }, rows),
        zeros::<Complex<T>>(if own_c { m } else { 0 }, n),
        2_usize.checked_mul(n).and_then(|columns| zeros::<T>(2 * rows, columns)),
    );
    let (Some(mut own_as), Some(mut own_cs), Some(mut parts)) = copies else { return false };
    // SAFETY: the caller's contract, and each copy is as large as its matrix.
    unsafe {
        let out = if own_c { View::contiguous(&mut own_cs, n) } else { c };
        for start in (0..k).step_by(rows) {
            poll();
            let (rows, mut left) = (rows.min(k - start), a.part(0, start));
            if own_a {
                let copy = View::contiguous(&mut own_as, rows);
                left.copy_to(copy, m, rows);
                left = copy;
            }
            expand(b.part(start, 0), rows, n, &mut parts);
            let right = View { start: parts.as_mut_ptr(), rows: 2 * n as isize, columns: 1 };
            let (a, c) = (real(left), real(out));
            in_registers(Product { size: (m, 2 * n, 2 * rows), a, b: right, c, add: start > 0, alone: false });
        }
        if own_c {
            out.copy_to(c, m, n);
        }
    }
    true
}

/// A matrix with contiguous rows as real numbers.
fn real<T: Copy>(matrix: View<Complex<T>>) -> View<T> {
    View { start: matrix.start.cast(), rows: 2 * matrix.rows, columns: 1 }
}

/// Writes `rows` rows of `b` as a real matrix.
///
/// # Safety
/// `b` has these rows and columns.
unsafe fn expand<T: Float + Machine>(b: View<Complex<T>>, rows: usize, columns: usize, to: &mut [T]) {
    for (p, pair) in to.chunks_exact_mut(4 * columns).take(rows).enumerate() {
        let (first, second) = pair.split_at_mut(2 * columns);
        for (j, (first, second)) in first.chunks_exact_mut(2).zip(second.chunks_exact_mut(2)).enumerate() {
            // SAFETY: p is below `rows`, j below `columns`.
            let Complex { re, im } = unsafe { *b.at(p, j) };
            first.copy_from_slice(&[re, im]);
            second.copy_from_slice(&[-im, re]);
        }
    }
}
