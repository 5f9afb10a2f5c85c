//! Copies between strided layouts, converting on the way.

use std::any::TypeId;

use smallvec::SmallVec;

use crate::cast::Cast;
use crate::simd::clones;
use crate::stream::{LARGE, fence, stream};
use crate::threads::parallel_for;

/// Elements that are worth a thread's while.
const GRAIN: usize = 1 << 16;
/// The side of the blocks that a transpose goes by; a block and its cache lines stay in L1.
const TILE: usize = 32;

/// One dimension: its length, and how far apart its elements are on either side.
#[derive(Clone, Copy)]
struct Dim {
    n: usize,
    src: isize,
    dst: isize,
}

/// All of them, the outermost first.
type Dims = SmallVec<[Dim; 6]>;

impl Dim {
    const ONE: Dim = Dim { n: 1, src: 0, dst: 0 };

    /// Whether this dimension, directly outside of `inner`, only continues it.
    fn continues(&self, inner: &Dim) -> bool {
        self.src == inner.src * inner.n as isize && self.dst == inner.dst * inner.n as isize
    }
}

/// Copies every element of a strided array, converting `A` to `B`. Strides count elements and may be 0 or negative.
///
/// # Safety
/// Every element that `shape` and the strides reach from `src` must be readable and from `dst` writable; no
/// element of `dst` may be reached twice, nor be an element of `src`.
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
    // SAFETY: with no dimension empty, all that `simplify` moves the pointers to are elements.
    let (dims, src, dst) = unsafe { simplify(shape, src, src_strides, dst, dst_strides) };
    if let [Dim { n, src: 1, dst: 1 }] = dims[..]
        && n * size_of::<B>() >= LARGE
        && TypeId::of::<A>() == TypeId::of::<B>()
    {
        let (src, dst) = (Pointer(src.cast_mut()), Pointer(dst));
        return parallel_for(n, GRAIN, |range| {
            let bytes = range.len() * size_of::<B>();
            // SAFETY: a part of the elements, which no other call writes to.
            unsafe { stream(src.get().add(range.start).cast(), dst.get().add(range.start).cast(), bytes) }
            fence();
        });
    }
    let Some((&outer, inner)) = dims.split_first() else {
        // SAFETY: the only element.
        return unsafe { dst.write((*src).cast()) };
    };
    let rest: usize = inner.iter().map(|dim| dim.n).product();
    let (src, dst) = (Pointer(src.cast_mut()), Pointer(dst));
    parallel_for(outer.n, (GRAIN / rest).max(1), |range| {
        let mut dims = dims.clone();
        dims[0].n = range.len();
        let start = range.start as isize;
        // SAFETY: a part of the outermost dimension, which no other call writes to.
        unsafe { walk(&mut dims, src.get().offset(start * outer.src), dst.get().offset(start * outer.dst)) };
    });
}

/// A pointer that threads may share, because they touch different elements.
pub(crate) struct Pointer<T>(pub(crate) *mut T);
// SAFETY: see above; the types are `Send`.
unsafe impl<T: Send + Sync> Sync for Pointer<T> {}

impl<T> Pointer<T> {
    pub(crate) fn get(&self) -> *mut T {
        self.0
    }
}

/// The same elements with as few dimensions as possible, in the order that `dst` lies in memory.
///
/// # Safety
/// No dimension may be empty; else as for [`copy`].
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
            // Backwards is forwards from the other end.
            let last = n as isize - 1;
            // SAFETY: the last element of this dimension.
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

/// Copies `dims`, of which the innermost two go to one of the loops below.
///
/// # Safety
/// As for [`copy`].
unsafe fn walk<A: Cast<B>, B: Copy + 'static>(dims: &mut [Dim], src: *const A, dst: *mut B) {
    let (outer, p, q) = match dims {
        [] => (&mut [][..], Dim::ONE, Dim::ONE),
        [q] => (&mut [][..], Dim::ONE, *q),
        [.., _, q] => {
            let q = *q;
            // Where the source runs along another dimension than the destination, those two make a transpose.
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
    // SAFETY: the caller's promise, for every plane of (p, q).
    unsafe { each_plane(outer, src, dst, p, q) }
}

/// # Safety
/// As for [`copy`].
unsafe fn each_plane<A: Cast<B>, B: Copy + 'static>(outer: &[Dim], src: *const A, dst: *mut B, p: Dim, q: Dim) {
    let Some((dim, outer)) = outer.split_first() else {
        // SAFETY: the caller's promise.
        return unsafe { plane(src, dst, p, q) };
    };
    for i in 0..dim.n as isize {
        // SAFETY: i is within the dimension.
        unsafe { each_plane(outer, src.offset(i * dim.src), dst.offset(i * dim.dst), p, q) };
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
    unsafe { plane(src, dst, p, q) }
}

/// Two dimensions, by whichever loop suits their strides.
///
/// # Safety
/// As for [`copy()`].
unsafe fn plane<A: Cast<B>, B: Copy + 'static>(src: *const A, dst: *mut B, p: Dim, q: Dim) {
    if p.src == 1 && q.dst == 1 && q.src.unsigned_abs() > 1 && p.n > 1 {
        // SAFETY: the caller's promise.
        return unsafe { transpose(src, dst, p, q) };
    }
    rows(src, dst, p, q)
}

clones! {
    /// One after the other.
    <[A, B]> fn rows(src: *const A, dst: *mut B, p: Dim, q: Dim) -> () where [A: Cast<B>, B: Copy + 'static] {
        for i in 0..p.n as isize {
            // SAFETY: i is within p.
            unsafe { copy_row(src.offset(i * p.src), q.src, dst.offset(i * p.dst), q.dst, q.n) }
        }
    }
}

/// `n` elements, so many steps apart on either side.
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
    // SAFETY: by contract; elements in order are a slice.
    unsafe {
        match (src_step, dst_step) {
            (1, 1) if TypeId::of::<A>() == TypeId::of::<B>() => dst.copy_from_nonoverlapping(src.cast::<B>(), n),
            (1, 1) => convert(std::slice::from_raw_parts(src, n), std::slice::from_raw_parts_mut(dst.cast(), n)),
            (0, 1) => std::slice::from_raw_parts_mut(dst, n).fill((*src).cast()),
            // A step that the compiler knows is a shuffle.
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

/// A source that is contiguous along `p` into a destination that is contiguous along `q`, through blocks that are
/// read along the one and written along the other.
///
/// # Safety
/// As for [`copy`], and `p.src` and `q.dst` must be 1.
unsafe fn transpose<A: Cast<B>, B: Copy>(src: *const A, dst: *mut B, p: Dim, q: Dim) {
    // SAFETY: the first element, which is there, as neither dimension is empty.
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
