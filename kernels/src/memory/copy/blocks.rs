//! Copies of two dimensions. A transpose is copied in blocks.

use std::mem::MaybeUninit;

use super::{Dim, Elements, channels};
use crate::memory::stream::{fence, stream};

/// The side length of the blocks of a transpose; a block and its cache lines fit the L1 cache.
pub(super) const TILE: usize = 32;
/// The number of elements of a part along each dimension. The source is read in runs that are long enough for the CPU to prefetch
/// them, and the part fits the L2 cache.
pub(super) const PART: usize = 128;
/// The fewest elements along each dimension of a transpose in registers.
#[cfg(feature = "engine")]
const NARROW: usize = 16;
/// The fewest bytes of a row that bypasses the cache: some whole cache lines.
const STREAMED: usize = 256;
/// The largest size of an element in bytes.
const WIDEST: usize = 16;

/// A block of converted elements.
#[repr(align(64))]
struct Block([MaybeUninit<u8>; TILE * TILE * WIDEST]);

/// Copies two dimensions with the loop that suits their strides.
///
/// # Safety
/// As for [`Rows`](super::Rows), with pointers to these elements.
pub(super) unsafe fn plane(elements: Elements, src: *const u8, dst: *mut u8, p: Dim, q: Dim, is_large: bool) {
    let is_transpose = p.src == 1 && q.dst == 1 && q.src.unsigned_abs() > 1 && p.n > 1;
    let bytes = q.n * elements.dst;
    let is_contiguous = elements.is_same && q.src == 1 && q.dst == 1;
    // SAFETY: the caller's contract.
    unsafe {
        match is_transpose {
            true if elements.is_same => transpose(elements.dst, src, dst, p, q, is_large),
            true => converted(elements, src, dst, p, q),
            false if is_large && is_contiguous && bytes >= STREAMED => {
                for i in 0..p.n as isize {
                    let [from, to] = [p.src, p.dst].map(|step| i * step * elements.dst as isize);
                    stream(src.offset(from), dst.offset(to), bytes);
                }
                fence();
            }
            false => (elements.rows)(src, dst, p, q),
        }
    }
}

/// Copies a source that is contiguous along `p` into a destination that is contiguous along `q`. Each block is converted along `p`
/// and then transposed.
///
/// # Safety
/// As for [`plane`], and `p.src` and `q.dst` must be 1.
unsafe fn converted(elements: Elements, src: *const u8, dst: *mut u8, p: Dim, q: Dim) {
    let mut block = Block([MaybeUninit::uninit(); TILE * TILE * WIDEST]);
    let block = block.0.as_mut_ptr().cast::<u8>();
    for i in (0..p.n).step_by(TILE) {
        for j in (0..q.n).step_by(TILE) {
            let (height, width) = (TILE.min(p.n - i), TILE.min(q.n - j));
            // SAFETY: the block is a part of the elements. It has room for TILE × TILE elements, of which the written ones are read.
            unsafe {
                let from = src.offset((j as isize * q.src + i as isize) * elements.src as isize);
                let to = dst.offset((i as isize * p.dst + j as isize) * elements.dst as isize);
                let (lines, line) =
                    (Dim { n: width, src: q.src, dst: TILE as isize }, Dim { n: height, src: 1, dst: 1 });
                (elements.rows)(from, block, lines, line);
                let (p, q) = (Dim { n: height, ..p }, Dim { n: width, src: TILE as isize, dst: 1 });
                transpose(elements.dst, block, to, p, q, false);
            }
        }
    }
}

/// Transposes elements of a size in bytes.
///
/// # Safety
/// As for [`plane`], and `p.src` and `q.dst` must be 1.
unsafe fn transpose(size: usize, src: *const u8, dst: *mut u8, p: Dim, q: Dim, is_large: bool) {
    // SAFETY: the caller's contract.
    unsafe {
        #[cfg(feature = "engine")]
        if p.n.min(q.n) >= NARROW && super::transpose::transpose(size, src, dst, p, q, is_large) {
            return;
        }
        let _ = is_large;
        match size {
            1 => by_elements::<[u8; 1]>(src, dst, p, q),
            2 => by_elements::<[u8; 2]>(src, dst, p, q),
            4 => by_elements::<[u8; 4]>(src, dst, p, q),
            8 => by_elements::<[u8; 8]>(src, dst, p, q),
            _ => by_elements::<[u8; WIDEST]>(src, dst, p, q),
        }
    }
}

/// Transposes elements of a type: groups of a few, or blocks.
///
/// # Safety
/// As for [`transpose`].
unsafe fn by_elements<T: Copy>(src: *const u8, dst: *mut u8, p: Dim, q: Dim) {
    let (src, dst) = (src.cast::<T>(), dst.cast::<T>());
    // SAFETY: the caller's contract.
    unsafe {
        if !channels::transpose(src, dst, p, q) {
            in_blocks(src, dst, p, q);
        }
    }
}

/// Transposes block by block. Each is read along `p` and written along `q`.
///
/// # Safety
/// As for [`transpose`].
unsafe fn in_blocks<T: Copy>(src: *const T, dst: *mut T, p: Dim, q: Dim) {
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
                        to.add(j).write(row[i]);
                    }
                }
            }
        }
    }
}
