//! Transposes in square blocks that fit the registers.

use std::mem::MaybeUninit;

use super::Dim;
use super::blocks::TILE;
use crate::memory::stream::{fence, stream};
use crate::runtime::register::{Job, Register, Task, Tiled, in_registers};

/// Transposes like [`blocks`](super::blocks) if elements have the size of a float; returns false if they don't.
/// Large results bypass the cache.
///
/// # Safety
/// As for [`plane`](super::blocks::plane), for elements of this size.
pub(super) unsafe fn transpose(size: usize, src: *const u8, dst: *mut u8, p: Dim, q: Dim, is_large: bool) -> bool {
    // SAFETY: the caller's contract. Registers copy any bit pattern unchanged.
    unsafe {
        match size {
            4 => in_registers(Transpose::<f32> { src: src.cast(), dst: dst.cast(), p, q, is_large }),
            8 => in_registers(Transpose::<f64> { src: src.cast(), dst: dst.cast(), p, q, is_large }),
            _ => return false,
        }
    }
    true
}

struct Transpose<T> {
    src: *const T,
    dst: *mut T,
    p: Dim,
    q: Dim,
    is_large: bool,
}

impl<T: Tiled> Job<T> for Transpose<T> {
    type Output = ();

    /// # Safety
    /// As for [`transpose`].
    unsafe fn run<R: Register<Element = T>>(self) {
        let Transpose { src, dst, p, q, is_large } = self;
        for i in (0..p.n).step_by(TILE) {
            for j in (0..q.n).step_by(TILE) {
                // SAFETY: the block is a part of the elements.
                unsafe {
                    let (src, dst) = (src.offset(j as isize * q.src).add(i), dst.offset(i as isize * p.dst).add(j));
                    let (p, q) = (Dim { n: TILE.min(p.n - i), ..p }, Dim { n: TILE.min(q.n - j), ..q });
                    R::run(Block::<R> { src, dst, p, q, is_large });
                }
            }
        }
        if is_large {
            fence();
        }
    }
}

/// A block of at most [`TILE`] elements along each dimension.
struct Block<R: Register> {
    src: *const R::Element,
    dst: *mut R::Element,
    p: Dim,
    q: Dim,
    is_large: bool,
}

/// A block of the result, in whole cache lines.
#[repr(align(64))]
struct Lines<T>([[T; TILE]; TILE]);

impl<R: Register> Task for Block<R> {
    type Output = ();

    /// # Safety
    /// As for [`transpose`].
    #[inline(always)]
    unsafe fn run(self) {
        let Block { src, dst, p, q, is_large } = self;
        let mut lines = MaybeUninit::<Lines<R::Element>>::uninit();
        let block = lines.as_mut_ptr().cast::<R::Element>();
        let at = |i: usize, j: usize| block.wrapping_add(i * TILE + j);
        let (height, width) = (p.n - p.n % R::LANES, q.n - q.n % R::LANES);
        // SAFETY: i is below p.n and j below q.n, which are at most TILE. Only written elements of the block are read.
        unsafe {
            for j in (0..width).step_by(R::LANES) {
                for i in (0..height).step_by(R::LANES) {
                    R::transpose(src.offset(j as isize * q.src).add(i), q.src, at(i, j), TILE);
                }
            }
            for j in 0..q.n {
                for i in if j < width { height } else { 0 }..p.n {
                    at(i, j).write(*src.offset(j as isize * q.src).add(i));
                }
            }
            for i in 0..p.n {
                let to = dst.offset(i as isize * p.dst);
                if is_large {
                    stream(at(i, 0).cast(), to.cast(), q.n * size_of::<R::Element>());
                } else {
                    to.copy_from_nonoverlapping(at(i, 0), q.n);
                }
            }
        }
    }
}
