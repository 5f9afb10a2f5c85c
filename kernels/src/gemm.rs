//! Matrix products.

mod complex;
pub(crate) mod tiled;

use std::any::TypeId;

use num_complex::Complex;

use crate::cast::Cast;
use crate::copy::copy;
use crate::scalar::{Machine, Num};
use crate::simd::clones;
use crate::stop::poll;
use crate::threads::parallel_for;
use tiled::{Product, in_registers};

/// Up to so many multiplications, a plain loop has finished before anything cleverer has begun.
const SMALL: usize = 128;
/// So many multiplications are worth a thread's while.
const GRAIN: usize = 1 << 21;
/// So many multiplications may take most of a second: larger products poll.
const BREATH: usize = 1 << 36;
/// Rows, or columns, of which the parts of such a product have a multiple.
const WHOLE: usize = 64;
/// Rows of `b` that stay in cache while all of `a` passes by.
const DEPTH: usize = 64;

/// Numbers that large matrices are multiplied of.
trait Gemm: Machine + Num + Cast<Self> {
    /// `c = a · b` for matrices with at least one element each.
    ///
    /// # Safety
    /// As for [`matmul`].
    unsafe fn multiply(m: usize, n: usize, k: usize, a: View<Self>, b: View<Self>, c: View<Self>);
}

/// A matrix: where it begins, and how far apart its rows and columns are.
#[derive(Clone, Copy)]
pub(crate) struct View<T> {
    pub start: *mut T,
    pub rows: isize,
    pub columns: isize,
}

// SAFETY: threads share a matrix that they read, and write to different rows of the one that they write.
unsafe impl<T: Send + Sync> Send for View<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for View<T> {}

impl<T: Copy> View<T> {
    fn cast<U>(self) -> View<U> {
        View { start: self.start.cast(), rows: self.rows, columns: self.columns }
    }

    pub(crate) fn transposed(self) -> Self {
        View { rows: self.columns, columns: self.rows, ..self }
    }

    pub(crate) fn at(self, row: usize, column: usize) -> *mut T {
        self.start.wrapping_offset(row as isize * self.rows + column as isize * self.columns)
    }

    /// What begins at this row and column.
    pub(crate) fn part(self, row: usize, column: usize) -> Self {
        View { start: self.at(row, column), ..self }
    }
}

impl<T: Machine> View<T> {
    /// A matrix of `columns` columns that lies in `memory` row by row.
    fn contiguous(memory: &mut [T], columns: usize) -> Self {
        View { start: memory.as_mut_ptr(), rows: columns as isize, columns: 1 }
    }

    /// # Safety
    /// As for [`copy`].
    unsafe fn copy_to(self, target: Self, rows: usize, columns: usize)
    where
        T: Cast<T>,
    {
        let (from, to) = ([self.rows, self.columns], [target.rows, target.columns]);
        // SAFETY: the caller's promise.
        unsafe { copy(&[rows, columns], self.start.cast_const(), &from, target.start, &to) }
    }
}

/// [`Gemm::multiply`] for whichever type `T` is.
///
/// # Safety
/// As for [`matmul`], with at least one element in each matrix.
unsafe fn large<T: Machine + Num>(m: usize, n: usize, k: usize, a: View<T>, b: View<T>, c: View<T>) {
    macro_rules! by_type {
        ($($t:ty)*) => {$(
            if TypeId::of::<T>() == TypeId::of::<$t>() {
                // SAFETY: the caller's promise, and T is this very type.
                return unsafe { <$t>::multiply(m, n, k, a.cast(), b.cast(), c.cast()) };
            }
        )*};
    }
    by_type! { f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 Complex<f32> Complex<f64> }
    unreachable!("every machine number is in the list")
}

/// A product that takes long, in parts between which it polls: halves of `c`, so that each sum stays what it is.
///
/// # Safety
/// As for [`large`].
unsafe fn in_breaths<T: Machine + Num>(m: usize, n: usize, k: usize, a: View<T>, b: View<T>, c: View<T>) {
    if m.max(n) == 1 || m.saturating_mul(n).saturating_mul(k) <= BREATH {
        poll();
        // SAFETY: the caller's promise.
        return unsafe { large(m, n, k, a, b, c) };
    }
    // Whole tiles, unless there are few.
    let half = |size: usize| if size < 4 * WHOLE { size / 2 } else { (size / 2).next_multiple_of(WHOLE) };
    // SAFETY: the caller's promise, for either half.
    unsafe {
        if n > m {
            let half = half(n);
            in_breaths(m, half, k, a, b, c);
            in_breaths(m, n - half, k, a, b.part(0, half), c.part(0, half));
        } else {
            let half = half(m);
            in_breaths(half, n, k, a, b, c);
            in_breaths(m - half, n, k, a.part(half, 0), b, c.part(half, 0));
        }
    }
}

/// `c = a · b`, where `a` is `m × k`, `b` is `k × n` and `c` is `m × n`; `_rs` and `_cs` are the strides of rows and
/// columns, in elements. Integers wrap. With `k = 0`, `c` becomes 0.
///
/// # Safety
/// `a` and `b` must be readable and `c` writable where the shapes and strides reach; `c` must not overlap itself or
/// the others.
#[allow(clippy::too_many_arguments)]
pub unsafe fn matmul<T: Machine + Num>(
    m: usize,
    n: usize,
    k: usize,
    a: *const T,
    a_rs: isize,
    a_cs: isize,
    b: *const T,
    b_rs: isize,
    b_cs: isize,
    c: *mut T,
    c_rs: isize,
    c_cs: isize,
) {
    let a = View { start: a.cast_mut(), rows: a_rs, columns: a_cs };
    let b = View { start: b.cast_mut(), rows: b_rs, columns: b_cs };
    let c = View { start: c, rows: c_rs, columns: c_cs };
    let work = m.saturating_mul(n).saturating_mul(k);
    if work > SMALL {
        // SAFETY: the caller's promise.
        return unsafe { in_breaths(m, n, k, a, b, c) };
    }
    // SAFETY: the caller's promise.
    unsafe { multiply_plainly(m, n, k, a, b, c) }
}

/// One sum after the other.
///
/// # Safety
/// As for [`matmul`].
unsafe fn multiply_plainly<T: Num + Machine>(m: usize, n: usize, k: usize, a: View<T>, b: View<T>, c: View<T>) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = T::zero();
            for p in 0..k {
                // SAFETY: i < m, j < n, p < k.
                sum += unsafe { *a.at(i, p) * *b.at(p, j) };
            }
            // SAFETY: as above.
            unsafe { c.at(i, j).write(sum) };
        }
    }
}

macro_rules! by_tile {
    ($($t:ty)*) => {$(
        impl Gemm for $t {
            unsafe fn multiply(m: usize, n: usize, k: usize, a: View<Self>, b: View<Self>, c: View<Self>) {
                // SAFETY: the caller's promise.
                unsafe { in_registers(Product { size: (m, n, k), a, b, c, add: false, alone: false }) }
            }
        }
    )*};
}
by_tile!(f32 f64);

macro_rules! by_parts {
    ($($t:ty)*) => {$(
        impl Gemm for Complex<$t> {
            unsafe fn multiply(m: usize, n: usize, k: usize, a: View<Self>, b: View<Self>, c: View<Self>) {
                // SAFETY: the caller's promise.
                if !unsafe { complex::multiply::<$t>((m, n, k), a, b, c) } {
                    // SAFETY: the caller's promise.
                    unsafe { multiply_plainly(m, n, k, a, b, c) }
                }
            }
        }
    )*};
}
by_parts!(f32 f64);

macro_rules! by_loop {
    ($($t:ty)*) => {$(
        impl Gemm for $t {
            unsafe fn multiply(m: usize, n: usize, k: usize, a: View<Self>, b: View<Self>, c: View<Self>) {
                // SAFETY: the caller's promise.
                unsafe { multiply_by_loop(m, n, k, a, b, c) }
            }
        }
    )*};
}
by_loop!(i8 i16 i32 i64 u8 u16 u32 u64);

/// A matrix of zeros, if there is memory for it: an expanded one may stand for more than there is.
pub(crate) fn zeros<T: Machine + Num>(rows: usize, columns: usize) -> Option<Vec<T>> {
    let (n, mut zeros) = (rows.checked_mul(columns)?, Vec::new());
    zeros.try_reserve_exact(n).ok()?;
    zeros.resize(n, T::zero());
    Some(zeros)
}

/// Rows of `c` gather multiples of the rows of `b`, both contiguous; whatever isn't is copied.
///
/// # Safety
/// As for [`matmul`].
unsafe fn multiply_by_loop<T: Gemm>(m: usize, n: usize, k: usize, a: View<T>, b: View<T>, c: View<T>) {
    if c.columns != 1 && c.rows == 1 {
        // SAFETY: cᵀ = bᵀ aᵀ.
        return unsafe { multiply_by_loop(n, m, k, b.transposed(), a.transposed(), c.transposed()) };
    }
    if b.columns != 1 && n > 1 {
        let Some(mut packed) = zeros(k, n) else {
            // SAFETY: the caller's promise.
            return unsafe { multiply_plainly(m, n, k, a, b, c) };
        };
        let rows = View::contiguous(&mut packed, n);
        // SAFETY: the caller's promise; `packed` is as large as `b`.
        return unsafe {
            b.copy_to(rows, k, n);
            multiply_by_loop(m, n, k, a, rows, c)
        };
    }
    if c.columns != 1 && n > 1 {
        let Some(mut packed) = zeros(m, n) else {
            // SAFETY: the caller's promise.
            return unsafe { multiply_plainly(m, n, k, a, b, c) };
        };
        let rows = View::contiguous(&mut packed, n);
        // SAFETY: the caller's promise; `packed` is as large as `c`.
        return unsafe {
            multiply_by_loop(m, n, k, a, b, rows);
            rows.copy_to(c, m, n)
        };
    }
    parallel_for(m, (GRAIN / n.saturating_mul(k)).max(1), |rows| {
        for i in rows.clone() {
            // SAFETY: row i of c, n contiguous elements that no other call touches.
            unsafe { std::slice::from_raw_parts_mut(c.at(i, 0), n) }.fill(T::zero());
        }
        for start in (0..k).step_by(DEPTH) {
            for i in rows.clone() {
                // SAFETY: as above.
                let sums = unsafe { std::slice::from_raw_parts_mut(c.at(i, 0), n) };
                gather(sums, a, i, b, start..(start + DEPTH).min(k));
            }
        }
    });
}

clones! {
    /// Adds `a[i, p] · b[p]` to `sums` for every `p`; the caller knows that these are within `a` and `b`.
    <[T]> fn gather(sums: &mut [T], a: View<T>, i: usize, b: View<T>, depth: std::ops::Range<usize>)
    where [T: Gemm] {
        for p in depth {
            // SAFETY: `multiply_by_loop` passes rows and depths of its matrices.
            let (factor, row) = unsafe { (*a.at(i, p), std::slice::from_raw_parts(b.at(p, 0), sums.len())) };
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += factor * *x;
            }
        }
    }
}
