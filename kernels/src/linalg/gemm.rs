//! Matrix products.

mod complex;
mod pairs;
pub(crate) mod tiled;

use std::any::TypeId;

use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};
use num_complex::Complex;

use crate::memory::{self, copy::copy};
use crate::number::Cast;
use crate::number::scalar::{Machine, Num};
use crate::runtime::register::in_registers;
use crate::runtime::simd::clones;
use crate::runtime::stop::{Pace, poll};
use crate::runtime::threads::parallel_for;
pub use pairs::{matmul_of_pairs, takes_pairs};
use tiled::{Parts, Product};

/// The maximum number of multiplications for which a plain loop is the fastest.
const SMALL: usize = 128;
/// The minimum number of multiplications per thread.
const GRAIN: usize = 1 << 21;
/// The number of multiplications that may take most of a second. Larger products poll.
const POLL_INTERVAL: usize = 1 << 36;
/// The parts of such a product have a multiple of this number of rows or columns.
const WHOLE: usize = 64;
/// The number of rows of `b` that stay in the cache during a loop over all of `a`.
const DEPTH: usize = 64;
/// The number of elements of `b` that are copied at a time.
const PACKED: usize = 1 << 20;

/// The number types of large matrix products.
trait Gemm: Machine + Num + Cast<Self> {
    /// `c = a · b` for matrices with at least one element each.
    ///
    /// # Safety
    /// `a` and `b` must be readable and `c` writable where the shapes and strides reach; `c` must not overlap itself or
    /// the others.
    unsafe fn multiply(m: usize, n: usize, k: usize, a: View<Self>, b: View<Self>, c: View<Self>);
}

/// A matrix: its start, and the strides of rows and columns.
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
    fn of(matrix: &ArrayView2<'_, T>) -> Self {
        View { start: matrix.as_ptr().cast_mut(), rows: matrix.strides()[0], columns: matrix.strides()[1] }
    }

    fn of_mut(matrix: &mut ArrayViewMut2<'_, T>) -> Self {
        View { start: matrix.as_mut_ptr(), rows: matrix.strides()[0], columns: matrix.strides()[1] }
    }

    fn cast<U>(self) -> View<U> {
        View { start: self.start.cast(), rows: self.rows, columns: self.columns }
    }

    pub(crate) fn transposed(self) -> Self {
        View { rows: self.columns, columns: self.rows, ..self }
    }

    pub(crate) fn at(self, row: usize, column: usize) -> *mut T {
        self.start.wrapping_offset(row as isize * self.rows + column as isize * self.columns)
    }

    /// The matrix of which this one is the part from this row and column on.
    pub(crate) fn at_origin(self, row: usize, column: usize) -> Self {
        let before = row as isize * self.rows + column as isize * self.columns;
        View { start: self.start.wrapping_offset(-before), ..self }
    }

    /// # Safety
    /// There are as many rows and columns, which nothing changes during the lifetime. Strides are not negative.
    pub(crate) unsafe fn read<'a>(self, rows: usize, columns: usize) -> ArrayView2<'a, T> {
        let strides = [self.rows as usize, self.columns as usize];
        // SAFETY: by contract.
        unsafe { ArrayView2::from_shape_ptr([rows, columns].strides(strides), self.start) }
    }

    /// The part of the matrix from this row and column on.
    pub(crate) fn part(self, row: usize, column: usize) -> Self {
        View { start: self.at(row, column), ..self }
    }
}

impl<T: Machine> View<T> {
    /// A row-major matrix of `columns` columns in `memory`.
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
        // SAFETY: the caller's contract.
        unsafe { copy(&[rows, columns], self.start.cast_const(), &from, target.start, &to) }
    }
}

/// Calls `Gemm::multiply` for the type `T`.
///
/// # Safety
/// As for `Gemm::multiply`, with at least one element in each matrix.
unsafe fn large<T: Machine + Num>(m: usize, n: usize, k: usize, a: View<T>, b: View<T>, c: View<T>) {
    macro_rules! by_type {
        ($($t:ty)*) => {$(
            if TypeId::of::<T>() == TypeId::of::<$t>() {
                // SAFETY: the caller's contract, and T is this type.
                return unsafe { <$t>::multiply(m, n, k, a.cast(), b.cast(), c.cast()) };
            }
        )*};
    }
    by_type! { f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 Complex<f32> Complex<f64> }
    unreachable!("every machine number is in the list")
}

/// A function that computes a product, as [`Gemm::multiply`] does.
type Multiply<T> = unsafe fn(m: usize, n: usize, k: usize, a: View<T>, b: View<T>, c: View<T>);

/// Computes a long product in parts and polls between them. It halves `c`, so that no sum changes.
///
/// # Safety
/// As for `multiply`.
unsafe fn in_polled_parts<T: Copy>(
    (m, n, k): (usize, usize, usize),
    a: View<T>,
    b: View<T>,
    c: View<T>,
    multiply: Multiply<T>,
) {
    if m.max(n) == 1 || m.saturating_mul(n).saturating_mul(k) <= POLL_INTERVAL {
        poll();
        // SAFETY: the caller's contract.
        return unsafe { multiply(m, n, k, a, b, c) };
    }
    // Halves are whole tiles, unless there are few.
    let half = |size: usize| if size < 4 * WHOLE { size / 2 } else { (size / 2).next_multiple_of(WHOLE) };
    // SAFETY: the caller's contract, for either half.
    unsafe {
        if n > m {
            let half = half(n);
            in_polled_parts((m, half, k), a, b, c, multiply);
            in_polled_parts((m, n - half, k), a, b.part(0, half), c.part(0, half), multiply);
        } else {
            let half = half(m);
            in_polled_parts((half, n, k), a, b, c, multiply);
            in_polled_parts((m - half, n, k), a.part(half, 0), b, c.part(half, 0), multiply);
        }
    }
}

/// `c = a · b` for matrices of any layout. Integers wrap. If `a` has no columns, `c` becomes 0.
///
/// # Panics
/// If the shapes are not `m × k`, `k × n` and `m × n`.
pub fn matmul<T: Machine + Num>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>, mut c: ArrayViewMut2<'_, T>) {
    let ((m, k), n) = (a.dim(), b.ncols());
    assert!(b.nrows() == k && c.dim() == (m, n), "{:?} by {:?} into {:?}", a.dim(), b.dim(), c.dim());
    let (a, b, c) = (View::of(&a), View::of(&b), View::of_mut(&mut c));
    let work = m.saturating_mul(n).saturating_mul(k);
    // SAFETY: sizes and strides are those of borrowed views. `c` is borrowed exclusively, so it overlaps no other view.
    unsafe {
        if work > SMALL { in_polled_parts((m, n, k), a, b, c, large) } else { multiply_plainly(m, n, k, a, b, c) }
    }
}

/// Computes one sum after the other.
///
/// # Safety
/// As for `Gemm::multiply`.
unsafe fn multiply_plainly<T: Num + Machine>(m: usize, n: usize, k: usize, a: View<T>, b: View<T>, c: View<T>) {
    let mut pace = Pace::default();
    for i in 0..m {
        for j in 0..n {
            let mut sum = T::zero();
            for p in 0..k {
                pace.step(1);
                // SAFETY: i < m, j < n, p < k.
                sum += unsafe { *a.at(i, p) * *b.at(p, j) };
            }
            // SAFETY: as above.
            unsafe { c.at(i, j).write(sum) };
        }
    }
}

/// A function of each part of a matrix: of the row and the column of its first element, and of its elements. Those of a row are
/// contiguous.
pub type Visit<'a, T> = &'a (dyn Fn([usize; 2], ArrayView2<'_, T>) + Sync);

/// The function of parts of another type.
///
/// # Safety
/// `T` is `U`.
pub(crate) unsafe fn visit_as<T, U>(visit: Visit<'_, T>) -> Visit<'_, U> {
    // SAFETY: by contract.
    unsafe { std::mem::transmute(visit) }
}

/// Computes `a · b` without storing it: `visit` gets each part as soon as it is complete, with the row and the column of its
/// first element, while it is in the cache. Several threads may call it at a time. The elements are those of [`matmul`].
///
/// Returns false without calling `visit` if the product is better computed as a whole: for vectors, few multiplications, a
/// large `b`, and numbers other than `f32` and `f64`.
///
/// # Panics
/// If the shapes are not `m × k` and `k × n`.
pub fn matmul_in_parts<T: Machine + Num>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>, visit: Visit<'_, T>) -> bool {
    let ((m, k), n) = (a.dim(), b.ncols());
    assert!(b.nrows() == k, "{:?} by {:?}", a.dim(), b.dim());
    let work = m.saturating_mul(n).saturating_mul(k);
    if m.min(n) == 1 || !(SMALL + 1..=POLL_INTERVAL).contains(&work) {
        return false;
    }
    poll();
    let (size, a, b) = ((m, n, k), View::of(&a), View::of(&b));
    macro_rules! by_type {
        ($($t:ty)*) => {$(
            if TypeId::of::<T>() == TypeId::of::<$t>() {
                // SAFETY: T is this type. Sizes and strides are those of borrowed views.
                return unsafe { in_registers(Parts { size, a: a.cast::<$t>(), b: b.cast(), visit: visit_as(visit) }) };
            }
        )*};
    }
    by_type! { f32 f64 }
    false
}

macro_rules! by_tile {
    ($($t:ty)*) => {$(
        impl Gemm for $t {
            unsafe fn multiply(m: usize, n: usize, k: usize, a: View<Self>, b: View<Self>, c: View<Self>) {
                // SAFETY: the caller's contract.
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
                // SAFETY: the caller's contract.
                if !unsafe { complex::multiply::<$t>((m, n, k), a, b, c) } {
                    // SAFETY: the caller's contract.
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
                // SAFETY: the caller's contract.
                unsafe { multiply_by_loop(m, n, k, a, b, c) }
            }
        }
    )*};
}
by_loop!(i8 i16 i32 i64 u8 u16 u32 u64);

/// A matrix of zeros; `None` if memory is exhausted. A copy of an expanded matrix may be larger than memory.
fn zeros<T: Machine>(rows: usize, columns: usize) -> Option<Vec<T>> {
    memory::zeros(rows.checked_mul(columns)?).ok()
}

/// Adds multiples of the rows of `b` to the rows of `c`. If the rows of `c` are not contiguous, it is copied; of `b`, a part at a time.
///
/// # Safety
/// As for `Gemm::multiply`.
unsafe fn multiply_by_loop<T: Gemm>(m: usize, n: usize, k: usize, a: View<T>, b: View<T>, c: View<T>) {
    if c.columns != 1 && c.rows == 1 {
        // SAFETY: cᵀ = bᵀ aᵀ.
        return unsafe { multiply_by_loop(n, m, k, b.transposed(), a.transposed(), c.transposed()) };
    }
    if c.columns != 1 && n > 1 {
        let Some(mut packed) = zeros(m, n) else {
            // SAFETY: the caller's contract.
            return unsafe { multiply_plainly(m, n, k, a, b, c) };
        };
        let rows = View::contiguous(&mut packed, n);
        // SAFETY: the caller's contract; `packed` is as large as `c`.
        return unsafe {
            multiply_by_loop(m, n, k, a, b, rows);
            rows.copy_to(c, m, n)
        };
    }
    let is_packed = b.columns != 1 && n > 1;
    let depth = if is_packed { (PACKED / n).clamp(1, k) } else { k };
    let Some(mut packed) = zeros(if is_packed { depth } else { 0 }, n) else {
        // SAFETY: the caller's contract.
        return unsafe { multiply_plainly(m, n, k, a, b, c) };
    };
    for start in (0..k).step_by(depth) {
        let (depth, mut rows) = (depth.min(k - start), b.part(start, 0));
        if is_packed {
            poll();
            let packed = View::contiguous(&mut packed, n);
            // SAFETY: these rows of `b`, and memory for them.
            unsafe { rows.copy_to(packed, depth, n) };
            rows = packed;
        }
        // SAFETY: the caller's contract, for these rows.
        unsafe { add_rows(m, n, depth, a.part(0, start), rows, c, start > 0) };
    }
}

/// `c = a · b`, or `c += a · b`. The rows of `b` and `c` are contiguous.
///
/// # Safety
/// As for `Gemm::multiply`.
unsafe fn add_rows<T: Gemm>(m: usize, n: usize, k: usize, a: View<T>, b: View<T>, c: View<T>, add: bool) {
    parallel_for(m, (GRAIN / n.saturating_mul(k)).max(1), |rows| {
        let mut pace = Pace::default();
        for start in (0..k).step_by(DEPTH) {
            let depth = start..(start + DEPTH).min(k);
            for i in rows.clone() {
                pace.step(n * depth.len());
                // SAFETY: row i of c, n contiguous elements that no other call accesses.
                let sums = unsafe { std::slice::from_raw_parts_mut(c.at(i, 0), n) };
                if start == 0 && !add {
                    sums.fill(T::zero());
                }
                accumulate(sums, a, i, b, depth.clone());
            }
        }
    });
}

clones! {
    /// Adds `a[i, p] · b[p]` to `sums` for every `p`. The caller ensures that these are within `a` and `b`.
    <[T]> fn accumulate(sums: &mut [T], a: View<T>, i: usize, b: View<T>, depth: std::ops::Range<usize>)
    where [T: Gemm] {
        for p in depth {
            // SAFETY: `add_rows` passes rows and depths of its matrices.
            let (factor, row) = unsafe { (*a.at(i, p), std::slice::from_raw_parts(b.at(p, 0), sums.len())) };
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += factor * *x;
            }
        }
    }
}
