//! Copies of any number of dimensions, as copies of two.

use smallvec::SmallVec;

use super::blocks::{PART, plane};
use super::{Dim, Elements, Pointer};
use crate::memory::stream::{LARGE, fence, stream};
use crate::runtime::threads::parallel_for;

/// The minimum number of elements per thread.
const GRAIN: usize = 1 << 16;

/// The fewest parts of a long dimension that threads share.
const PARTS: usize = 16;
/// The length from which a dimension of a transpose has enough parts for threads.
const SHORT: usize = 2 * PART;

/// All dimensions, the outermost first.
type Dims = SmallVec<[Dim; 6]>;

impl Dim {
    const ONE: Dim = Dim { n: 1, src: 0, dst: 0 };

    /// True if this dimension, directly outside of `inner`, can be merged with it.
    fn continues(&self, inner: &Dim) -> bool {
        self.src == inner.src * inner.n as isize && self.dst == inner.dst * inner.n as isize
    }
}

impl Elements {
    /// The pointers to the `i`-th element along a dimension.
    ///
    /// # Safety
    /// The dimension is of these elements, and has such an element.
    unsafe fn at(&self, (src, dst): (*const u8, *mut u8), dim: &Dim, i: isize) -> (*const u8, *mut u8) {
        // SAFETY: by contract.
        unsafe { (src.offset(i * dim.src * self.src as isize), dst.offset(i * dim.dst * self.dst as isize)) }
    }
}

/// Copies every element of a strided array. Strides count elements.
///
/// # Safety
/// As for [`copy()`](super::copy()).
pub(super) unsafe fn copy(
    elements: Elements,
    shape: &[usize],
    (src, src_strides): (*const u8, &[isize]),
    (dst, dst_strides): (*mut u8, &[isize]),
) {
    debug_assert!(shape.len() == src_strides.len() && shape.len() == dst_strides.len(), "one stride per dimension");
    if shape.contains(&0) {
        return;
    }
    let strides = src_strides.iter().zip(dst_strides);
    let all = shape.iter().zip(strides).map(|(&n, (&src, &dst))| Dim { n, src, dst });
    // SAFETY: no dimension is empty, so `simplify` moves the pointers to elements only.
    let (dims, (src, dst)) = unsafe { simplify(&elements, all, (src, dst)) };
    let (from, to) = (Pointer(src.cast_mut()), Pointer(dst));
    if let [Dim { n, src: 1, dst: 1 }] = dims[..]
        && n * elements.dst >= LARGE
        && elements.is_same
    {
        let size = elements.dst;
        return parallel_for(n, GRAIN, |range| {
            let start = range.start * size;
            // SAFETY: the range is a part of the elements, and no other call writes to it.
            unsafe { stream(from.get().add(start), to.get().add(start), range.len() * size) }
            fence();
        });
    }
    let Some(outer) = dims.first() else {
        // SAFETY: the pointers are valid for the only element.
        return unsafe { (elements.rows)(src, dst, Dim::ONE, Dim::ONE) };
    };
    let count: usize = dims.iter().map(|dim| dim.n).product();
    // The memory that the copy extends over, of which it may be a part.
    let is_large = count.max(outer.n * outer.dst.unsigned_abs()) * elements.dst >= LARGE;
    // Threads share the outermost dimension, unless it is one of a transpose that has few parts and the next one is longer.
    let is_short = outer.src == 1 && outer.n < SHORT && dims.get(1).is_some_and(|next| next.n > outer.n);
    let shared = usize::from(is_short);
    let dim = dims[shared];
    // The rows of a transpose are copied in parts.
    let fewest = if dim.src == 1 { PART.min(dim.n / PARTS).max(1) } else { 1 };
    parallel_for(dim.n, (GRAIN / (count / dim.n)).max(fewest), |range| {
        let mut dims = dims.clone();
        dims[shared].n = range.len();
        // SAFETY: the range is a part of the dimension, and no other call writes to it.
        unsafe {
            let start = elements.at((from.get().cast_const(), to.get()), &dim, range.start as isize);
            walk(&elements, &mut dims, start, is_large);
        }
    });
}

/// Describes the same elements with as few dimensions as possible, in the memory order of the destination.
///
/// # Safety
/// No dimension may be empty; otherwise as for [`copy`].
unsafe fn simplify(
    elements: &Elements,
    all: impl Iterator<Item = Dim>,
    mut start: (*const u8, *mut u8),
) -> (Dims, (*const u8, *mut u8)) {
    let mut dims = Dims::new();
    for mut dim in all {
        if dim.dst < 0 {
            // Reverse a dimension with a negative stride: start at its last element.
            // SAFETY: the index of the last element of this dimension is valid.
            start = unsafe { elements.at(start, &dim, dim.n as isize - 1) };
            (dim.src, dim.dst) = (-dim.src, -dim.dst);
        }
        if dim.n > 1 {
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
    (dims, start)
}

/// Copies `dims`. The innermost two dimensions are copied together.
///
/// # Safety
/// As for [`copy`].
unsafe fn walk(elements: &Elements, dims: &mut [Dim], start: (*const u8, *mut u8), is_large: bool) {
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
    unsafe { each_plane(elements, outer, start, p, q, is_large) }
}

/// # Safety
/// As for [`copy`].
unsafe fn each_plane(elements: &Elements, outer: &[Dim], start: (*const u8, *mut u8), p: Dim, q: Dim, is_large: bool) {
    let Some((dim, outer)) = outer.split_first() else {
        // SAFETY: the caller's contract.
        return unsafe { plane(*elements, start.0, start.1, p, q, is_large) };
    };
    for i in 0..dim.n as isize {
        // SAFETY: i is within the dimension.
        unsafe { each_plane(elements, outer, elements.at(start, dim, i), p, q, is_large) };
    }
}
