//! Products of floats, computed in tiles of registers.
//!
//! [`tile`] is the innermost loop. [`pack`] copies matrices to the order in which it reads them. [`blocks`] splits a
//! product into blocks that fit the caches and that threads share. [`vector`] handles matrices of one row or column.

mod blocks;
mod memory;
mod pack;
mod tile;
mod vector;

use super::{View, Visit};
use crate::runtime::register::{Job, Register, Tiled};

pub(crate) use memory::{IMAGES, try_with_memory};
pub(crate) use pack::{FEW, Right, copy_few};
pub(crate) use tile::{Sums, Table, Tile, by_rows, tiles_of, unrolled};

/// `c = a · b`, or `c += a · b`.
pub(crate) struct Product<T, B> {
    /// `m`, `n` and `k`, all at least 1.
    pub size: (usize, usize, usize),
    /// `m × k`
    pub a: View<T>,
    /// `k × n`
    pub b: B,
    /// `m × n`
    pub c: View<T>,
    /// True if the product is added to `c`.
    pub add: bool,
    /// True if only the caller's thread computes it.
    pub alone: bool,
}

impl<T: Tiled, B: Right<T>> Job<T> for Product<T, B> {
    type Output = ();

    /// # Safety
    /// As for `Gemm::multiply`.
    unsafe fn run<R: Register<Element = T>>(self) {
        let Product { size, a, b, c, add, alone } = self;
        // SAFETY: the caller's contract.
        unsafe {
            match b.view() {
                Some(b) => multiply::<R>(size, a, b, c, add, alone),
                None => blocks::multiply::<R, B>(size, a, b, c, add, alone),
            }
        }
    }
}

/// `a · b`, whose parts `visit` gets as soon as they are complete.
pub(super) struct Parts<'a, T> {
    /// `m`, `n` and `k`, all at least 1.
    pub size: (usize, usize, usize),
    /// `m × k`
    pub a: View<T>,
    /// `k × n`
    pub b: View<T>,
    pub visit: Visit<'a, T>,
}

impl<T: Tiled> Job<T> for Parts<'_, T> {
    /// False if it is better computed as a whole. Then `visit` was not called.
    type Output = bool;

    /// # Safety
    /// `a` and `b` must be readable where their sizes and strides reach.
    unsafe fn run<R: Register<Element = T>>(self) -> bool {
        let Parts { size, a, b, visit } = self;
        // SAFETY: the caller's contract.
        !vector::is_few(size, &a, &b) && unsafe { blocks::visit::<R>(size, a, b, visit) }
    }
}

/// `c = a · b` for matrices of pairs of bfloat16.
///
/// # Safety
/// As for `Gemm::multiply`, with at least one element in each matrix, on a CPU with AVX512_BF16. A pair is in the place of each
/// number of `a` and `b`.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn multiply_pairs(m: usize, n: usize, k: usize, a: View<f32>, b: View<f32>, c: View<f32>) {
    // SAFETY: the caller's contract.
    unsafe { blocks::multiply::<crate::runtime::register::Pairs, _>((m, n, k), a, b, c, false, false) }
}

/// # Safety
/// As for `Gemm::multiply`, with at least one element in each matrix, on a CPU with the instructions of `R`.
unsafe fn multiply<R: Register>(
    (m, n, k): (usize, usize, usize),
    a: View<R::Element>,
    b: View<R::Element>,
    c: View<R::Element>,
    add: bool,
    alone: bool,
) {
    let is_vector = |n: usize, matrix: View<_>, step: isize| {
        n == 1 && !alone && !add && (matrix.columns == 1 || matrix.rows == 1) && (step == 1 || k <= vector::MOST)
    };
    // SAFETY: the caller's contract; a row is the column of cᵀ = bᵀ aᵀ.
    unsafe {
        if is_vector(n, a, b.rows) {
            vector::multiply::<R>((m, k), a, (b.start, b.rows), (c.start, c.rows));
        } else if is_vector(m, b, a.columns) {
            vector::multiply::<R>((n, k), b.transposed(), (a.start, a.columns), (c.start, c.columns));
        } else if !alone && !add && c.columns == 1 && vector::is_few((m, n, k), &a, &b) {
            vector::multiply_few::<R>((m, n, k), a, b, c);
        } else {
            if c.columns != 1 && c.rows == 1 {
                // cᵀ = bᵀ aᵀ
                return blocks::multiply::<R, _>((n, m, k), b.transposed(), a.transposed(), c.transposed(), add, alone);
            }
            blocks::multiply::<R, _>((m, n, k), a, b, c, add, alone);
        }
    }
}
