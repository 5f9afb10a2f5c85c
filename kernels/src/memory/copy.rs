//! Copies between strided layouts, with dtype conversion. Only the loop over two dimensions depends on the dtypes, so that little code
//! is compiled for each pair of them.

mod blocks;
mod channels;
#[cfg(feature = "engine")]
mod transpose;
mod walk;

use std::any::TypeId;
use std::borrow::Cow;

use ndarray::{ArrayView, ArrayViewMut, Dimension};

use crate::number::Cast;
use crate::runtime::simd::clones;
use crate::runtime::stop::filled;

/// One dimension: its length and its strides in source and destination, in elements.
#[derive(Clone, Copy)]
struct Dim {
    n: usize,
    src: isize,
    dst: isize,
}

/// Copies two dimensions: one row after the other.
///
/// # Safety
/// As for [`copy()`], with pointers to elements of the dtypes.
type Rows = unsafe fn(src: *const u8, dst: *mut u8, p: Dim, q: Dim);

/// What a copy needs to know of its dtypes.
#[derive(Clone, Copy)]
struct Elements {
    /// The sizes of an element in bytes.
    src: usize,
    dst: usize,
    /// Whether both dtypes are the same.
    is_same: bool,
    rows: Rows,
}

impl Elements {
    fn of<A: Cast<B>, B: Copy + 'static>() -> Elements {
        let is_same = TypeId::of::<A>() == TypeId::of::<B>();
        Elements { src: size_of::<A>(), dst: size_of::<B>(), is_same, rows: rows_of::<A, B> }
    }
}

/// The elements of a view in row-major order: a copy, or the same memory if it is contiguous. If memory is exhausted, the
/// computation [stops](crate::runtime::stop).
pub fn contiguous<'a, T: Copy + Default, D: Dimension>(x: &'a ArrayView<'_, T, D>) -> Cow<'a, [T]> {
    if let Some(elements) = x.as_slice() {
        return Cow::Borrowed(elements);
    }
    let mut elements = filled(T::default(), x.len());
    if let Ok(mut copy) = ArrayViewMut::from_shape(x.raw_dim(), &mut elements) {
        copy.assign(x);
    }
    Cow::Owned(elements)
}

/// Copies every element of a strided array, converting `A` to `B`. Strides count elements and may be 0 or negative.
///
/// # Safety
/// Every element that `shape` and the strides reach from `src` must be readable, and every one that they reach from
/// `dst` must be writable. No element of `dst` may be reached twice or be an element of `src`.
pub unsafe fn copy<A: Cast<B>, B: Copy + Send + Sync + 'static>(
    shape: &[usize],
    src: *const A,
    src_strides: &[isize],
    dst: *mut B,
    dst_strides: &[isize],
) {
    // SAFETY: by contract.
    unsafe { walk::copy(Elements::of::<A, B>(), shape, (src.cast(), src_strides), (dst.cast(), dst_strides)) }
}

/// Copies the elements of two dimensions on this thread, converting `A` to `B`.
///
/// # Safety
/// As for [`copy()`].
#[inline]
pub unsafe fn copy_plane<A: Cast<B>, B: Copy + 'static>(
    src: *const A,
    src_steps: [isize; 2],
    dst: *mut B,
    dst_steps: [isize; 2],
    sizes: [usize; 2],
) {
    let [p, q] = [0, 1].map(|k| Dim { n: sizes[k], src: src_steps[k], dst: dst_steps[k] });
    let by_columns = p.n > 1 && q.n > 1 && p.dst.unsigned_abs() < q.dst.unsigned_abs();
    let (p, q) = if by_columns { (q, p) } else { (p, q) };
    // SAFETY: by contract.
    unsafe { blocks::plane(Elements::of::<A, B>(), src.cast(), dst.cast(), p, q, false) }
}

/// A pointer that threads may share because they access different elements.
pub(crate) struct Pointer<T>(pub(crate) *mut T);
// SAFETY: see above; the types are `Send`.
unsafe impl<T: Send + Sync> Sync for Pointer<T> {}

impl<T> Pointer<T> {
    pub(crate) fn get(&self) -> *mut T {
        self.0
    }
}

/// # Safety
/// As for [`Rows`].
unsafe fn rows_of<A: Cast<B>, B: Copy + 'static>(src: *const u8, dst: *mut u8, p: Dim, q: Dim) {
    rows::<A, B>(src.cast(), dst.cast(), p, q)
}

clones! {
    /// Copies one row after the other.
    <[A, B]> fn rows(src: *const A, dst: *mut B, p: Dim, q: Dim) -> () where [A: Cast<B>, B: Copy + 'static] {
        for i in 0..p.n as isize {
            // SAFETY: i is within p.
            unsafe { copy_row(src.offset(i * p.src), q.src, dst.offset(i * p.dst), q.dst, q.n) }
        }
    }
}

/// Copies `n` elements with the given strides.
///
/// # Safety
/// As for [`copy()`].
#[inline(always)]
pub(crate) unsafe fn copy_row<A: Cast<B>, B: Copy + 'static>(
    src: *const A,
    src_step: isize,
    dst: *mut B,
    dst_step: isize,
    n: usize,
) {
    // SAFETY: by contract; elements with a stride of 1 are a slice.
    unsafe {
        match (src_step, dst_step) {
            (1, 1) if TypeId::of::<A>() == TypeId::of::<B>() => dst.copy_from_nonoverlapping(src.cast::<B>(), n),
            (1, 1) => convert(std::slice::from_raw_parts(src, n), std::slice::from_raw_parts_mut(dst.cast(), n)),
            (0, 1) => std::slice::from_raw_parts_mut(dst, n).fill((*src).cast()),
            // With a constant stride, LLVM compiles the loop to shuffles.
            (2, 1) => (0..n).for_each(|j| dst.add(j).write((*src.add(2 * j)).cast())),
            (-1, 1) => (0..n).for_each(|j| dst.add(j).write((*src.sub(j)).cast())),
            _ => {
                for j in 0..n as isize {
                    dst.offset(j * dst_step).write((*src.offset(j * src_step)).cast());
                }
            }
        }
    }
}

clones! {
    <[A, B]> fn convert(src: &[A], dst: &mut [std::mem::MaybeUninit<B>]) where [A: Cast<B>] {
        for (dst, src) in dst.iter_mut().zip(src) {
            dst.write((*src).cast());
        }
    }
}
