//! Transposes in square blocks that fit the registers.

use super::Dim;
use super::blocks::{PART, TILE};
use crate::memory::Line;
use crate::memory::stream::{fence, stream};
use crate::runtime::register::{Job, Register, Task, Tiled, in_registers};
use crate::runtime::stop::vec_for;

/// Transposes like [`blocks`](super::blocks) if elements have the size of a float and the rows of the destination are in order;
/// otherwise returns false. Large results bypass the cache.
///
/// # Safety
/// As for [`plane`](super::blocks::plane), for elements of this size.
pub(super) unsafe fn transpose(size: usize, src: *const u8, dst: *mut u8, p: Dim, q: Dim, is_large: bool) -> bool {
    if p.dst < 0 {
        return false;
    }
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
        let mut room: Vec<Line> = vec_for(if is_large { PART * PART / Line::len::<T>() } else { 0 });
        let room = room.as_mut_ptr().cast::<T>();
        for i in (0..p.n).step_by(PART) {
            for j in (0..q.n).step_by(PART) {
                // SAFETY: the part is within the elements, and `room` has room for it.
                unsafe {
                    let (src, dst) = (src.offset(j as isize * q.src).add(i), dst.offset(i as isize * p.dst).add(j));
                    let (p, q) = (Dim { n: PART.min(p.n - i), ..p }, Dim { n: PART.min(q.n - j), ..q });
                    if !is_large {
                        part::<R>(src, dst, p, q);
                        continue;
                    }
                    // Long runs of lines are written faster than single ones.
                    let step = q.n as isize;
                    part::<R>(src, room, Dim { dst: step, ..p }, q);
                    let (runs, len) = if p.dst == step { (1, p.n * q.n) } else { (p.n, q.n) };
                    for i in 0..runs as isize {
                        stream(room.offset(i * step).cast(), dst.offset(i * p.dst).cast(), len * size_of::<T>());
                    }
                }
            }
        }
        if is_large {
            fence();
        }
    }
}

/// Transposes a part in blocks.
///
/// # Safety
/// As for [`transpose`], on a CPU with the instructions of `R`.
unsafe fn part<R: Register>(src: *const R::Element, dst: *mut R::Element, p: Dim, q: Dim) {
    // A block has a cache line of each row of the source, which the block beside it continues: the CPU prefetches about as many rows.
    let line = Line::len::<R::Element>();
    for j in (0..q.n).step_by(line) {
        for i in (0..p.n).step_by(TILE) {
            // SAFETY: the block is a part of the elements.
            unsafe {
                let (src, dst) = (src.offset(j as isize * q.src).add(i), dst.offset(i as isize * p.dst).add(j));
                let (p, q) = (Dim { n: TILE.min(p.n - i), ..p }, Dim { n: line.min(q.n - j), ..q });
                R::run(Block::<R> { src, dst, p, q });
            }
        }
    }
}

/// A block of at most [`TILE`] elements along `p`, and of a cache line along `q`.
struct Block<R: Register> {
    src: *const R::Element,
    dst: *mut R::Element,
    p: Dim,
    q: Dim,
}

impl<R: Register> Task for Block<R> {
    type Output = ();

    /// # Safety
    /// As for [`transpose`].
    #[inline(always)]
    unsafe fn run(self) {
        let Block { src, dst, p, q } = self;
        let from = |i: usize, j: usize| src.wrapping_offset(j as isize * q.src).wrapping_add(i);
        let to = |i: usize, j: usize| dst.wrapping_offset(i as isize * p.dst).wrapping_add(j);
        let (height, width) = (p.n - p.n % R::LANES, q.n - q.n % R::LANES);
        // SAFETY: i is below p.n, and j below q.n. `p.dst` is not negative.
        unsafe {
            for j in (0..width).step_by(R::LANES) {
                for i in (0..height).step_by(R::LANES) {
                    R::transpose(from(i, j), q.src, to(i, j), p.dst as usize);
                }
            }
            for j in 0..q.n {
                for i in if j < width { height } else { 0 }..p.n {
                    to(i, j).write(*from(i, j));
                }
            }
        }
    }
}
