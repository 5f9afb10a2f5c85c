//! Copies between strided layouts, with dtype conversion.

#[cfg(feature = "engine")]
mod transpose;

use std::any::TypeId;
use std::borrow::Cow;

use ndarray::{ArrayView, ArrayViewMut, Dimension};
use smallvec::SmallVec;

use crate::memory::stream::{LARGE, fence, stream};
use crate::number::Cast;
use crate::runtime::simd::clones;
use crate::runtime::stop::filled;
use crate::runtime::threads::parallel_for;

/// The minimum number of elements per thread.
const GRAIN: usize = 1 << 16;
/// The side length of the blocks of a transpose; a block and its cache lines fit the L1 cache.
const TILE: usize = 32;

/// One dimension: its length and its strides in source and destination.
#[derive(Clone, Copy)]
struct Dim {
    n: usize,
    src: isize,
    dst: isize,
}

/// All dimensions, the outermost first.
type Dims = SmallVec<[Dim; 6]>;

impl Dim {
    const ONE: Dim = Dim { n: 1, src: 0, dst: 0 };

    /// True if this dimension, directly outside of `inner`, can be merged with it.
    fn continues(&self, inner: &Dim) -> bool {
        self.src == inner.src * inner.n as isize && self.dst == inner.dst * inner.n as isize
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
    debug_assert!(shape.len() == src_strides.len() && shape.len() == dst_strides.len(), "one stride per dimension");
    if shape.contains(&0) {
        return;
    }
    // SAFETY: no dimension is empty, so `simplify` moves the pointers to elements only.
    let (dims, src, dst) = unsafe { simplify(shape, src, src_strides, dst, dst_strides) };
    if let [Dim { n, src: 1, dst: 1 }] = dims[..]
        && n * size_of::<B>() >= LARGE
        && TypeId::of::<A>() == TypeId::of::<B>()
    {
        let (src, dst) = (Pointer(src.cast_mut()), Pointer(dst));
        return parallel_for(n, GRAIN, |range| {
            let bytes = range.len() * size_of::<B>();
            // SAFETY: the range is a part of the elements, and no other call writes to it.
            unsafe { stream(src.get().add(range.start).cast(), dst.get().add(range.start).cast(), bytes) }
            fence();
        });
    }
    let Some((&outer, inner)) = dims.split_first() else {
        // SAFETY: the pointers are valid for the only element.
        return unsafe { dst.write((*src).cast()) };
    };
    let rest: usize = inner.iter().map(|dim| dim.n).product();
    let is_large = outer.n * rest * size_of::<B>() >= LARGE;
    let (src, dst) = (Pointer(src.cast_mut()), Pointer(dst));
    parallel_for(outer.n, (GRAIN / rest).max(1), |range| {
        let mut dims = dims.clone();
        dims[0].n = range.len();
        let start = range.start as isize;
        // SAFETY: the range is a part of the outermost dimension, and no other call writes to it.
        unsafe { walk(&mut dims, src.get().offset(start * outer.src), dst.get().offset(start * outer.dst), is_large) };
    });
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

/// Describes the same elements with as few dimensions as possible, in the memory order of `dst`.
///
/// # Safety
/// No dimension may be empty; otherwise as for [`copy`].
unsafe fn simplify<A, B>(
    shape: &[usize],
    mut src: *const A,
    src_strides: &[isize],
    mut dst: *mut B,
    dst_strides: &[isize],
) -> (Dims, *const A, *mut B) {
    let mut dims = Dims::new();
    for ((&n, &src_stride), &dst_stride) in shape.iter().zip(src_strides).zip(dst_strides) {
        let mut dim = Dim { n, src: src_stride, dst: dst_stride };
        if dim.dst < 0 {
            // Reverse a dimension with a negative stride: start at its last element.
            let last = n as isize - 1;
            // SAFETY: the index of the last element of this dimension is valid.
            unsafe {
                src = src.offset(last * dim.src);
                dst = dst.offset(last * dim.dst);
            }
            (dim.src, dim.dst) = (-dim.src, -dim.dst);
        }
        if n > 1 {
            dims.push(dim);
        }
    }
    dims.sort_unstable_by_key(|dim| std::cmp::Reverse((dim.dst, dim.src.unsigned_abs())));
    dims.dedup_by(|inner, outer| {
        let merge = outer.continues(inner);
        if merge {
            *outer = Dim { n: outer.n * inner.n, ..*inner };
        }
        merge
    });
    (dims, src, dst)
}

/// Copies `dims`. The innermost two dimensions are copied by one of the loops below.
///
/// # Safety
/// As for [`copy`].
unsafe fn walk<A: Cast<B>, B: Copy + 'static>(dims: &mut [Dim], src: *const A, dst: *mut B, is_large: bool) {
    let (outer, p, q) = match dims {
        [] => (&mut [][..], Dim::ONE, Dim::ONE),
        [q] => (&mut [][..], Dim::ONE, *q),
        [.., _, q] => {
            let q = *q;
            // If source and destination are contiguous along different dimensions, these two form a transpose.
            let outer = dims.len() - 1;
            let fastest = (0..outer).min_by_key(|&k| match dims[k].src.unsigned_abs() {
                0 => usize::MAX,
                stride => stride,
            });
            if let Some(fastest) = fastest.filter(|&k| dims[k].src == 1 && q.src != 1) {
                dims[fastest..outer].rotate_left(1);
            }
            let p = dims[outer - 1];
            (&mut dims[..outer - 1], p, q)
        }
    };
    // SAFETY: the caller's contract, for every plane of (p, q).
    unsafe { each_plane(outer, src, dst, p, q, is_large) }
}

/// # Safety
/// As for [`copy`].
unsafe fn each_plane<A: Cast<B>, B: Copy + 'static>(
    outer: &[Dim],
    src: *const A,
    dst: *mut B,
    p: Dim,
    q: Dim,
    is_large: bool,
) {
    let Some((dim, outer)) = outer.split_first() else {
        // SAFETY: the caller's contract.
        return unsafe { plane(src, dst, p, q, is_large) };
    };
    for i in 0..dim.n as isize {
        // SAFETY: i is within the dimension.
        unsafe { each_plane(outer, src.offset(i * dim.src), dst.offset(i * dim.dst), p, q, is_large) };
    }
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
    unsafe { plane(src, dst, p, q, false) }
}

/// Copies two dimensions with the loop that suits their strides.
///
/// # Safety
/// As for [`copy()`].
unsafe fn plane<A: Cast<B>, B: Copy + 'static>(src: *const A, dst: *mut B, p: Dim, q: Dim, is_large: bool) {
    if p.src == 1 && q.dst == 1 && q.src.unsigned_abs() > 1 && p.n > 1 {
        // SAFETY: the caller's contract.
        return unsafe { transpose(src, dst, p, q, is_large) };
    }
    rows(src, dst, p, q)
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

/// Copies a source that is contiguous along `p` into a destination that is contiguous along `q`. Each block is read
/// along `p` and written along `q`.
///
/// # Safety
/// As for [`copy`], and `p.src` and `q.dst` must be 1.
unsafe fn transpose<A: Cast<B>, B: Copy + 'static>(src: *const A, dst: *mut B, p: Dim, q: Dim, is_large: bool) {
    // SAFETY: the caller's contract.
    #[cfg(feature = "engine")]
    if TypeId::of::<A>() == TypeId::of::<B>() && unsafe { transpose::transpose(src.cast::<B>(), dst, p, q, is_large) } {
        return;
    }
    let _ = is_large;
    // SAFETY: neither dimension is empty, so the first element exists.
    let mut tile = unsafe { [[*src; TILE]; TILE] };
    for i0 in (0..p.n).step_by(TILE) {
        for j0 in (0..q.n).step_by(TILE) {
            let (height, width) = (TILE.min(p.n - i0), TILE.min(q.n - j0));
            for (j, row) in tile[..width].iter_mut().enumerate() {
                // SAFETY: `height` elements along p, where the source is contiguous.
                unsafe {
                    let from = src.offset((j0 + j) as isize * q.src).add(i0);
                    row.as_mut_ptr().copy_from_nonoverlapping(from, height);
                }
            }
            for i in 0..height {
                // SAFETY: `width` elements along q, where the destination is contiguous.
                unsafe {
                    let to = dst.offset((i0 + i) as isize * p.dst).add(j0);
                    for (j, row) in tile[..width].iter().enumerate() {
                        to.add(j).write(row[i].cast());
                    }
                }
            }
        }
    }
}
