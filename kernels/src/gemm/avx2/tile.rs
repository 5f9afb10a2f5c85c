//! Tiles of a product: sums that stay in registers from the first multiplication to the last.

use std::arch::asm;
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use super::register::Register;
use crate::gemm::View;

/// Rows of a tile, at most: twelve sums, a row of `b` and an element of `a` fill fifteen of sixteen registers.
pub(super) const ROWS: usize = 6;
/// Registers side by side in a row of a tile, at most.
pub(super) const WIDTH: usize = 2;
/// Multiplications for each sum after which it is worth the while to have called for `c`.
const LONG: usize = 64;

/// The first row of each tile, and how many: tiles of nearly one size waste least.
#[inline]
pub(super) fn tiles_of(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let tiles = rows.div_ceil(ROWS);
    let (least, longer) = (rows / tiles, rows % tiles);
    (0..tiles).map(move |tile| (tile * least + tile.min(longer), least + usize::from(tile < longer)))
}

/// A tile `c = a · b`, or `c += a · b`.
pub(super) struct Tile<T> {
    /// `rows × depth`.
    pub a: View<T>,
    /// `depth ×` as many columns as fill the registers, side by side.
    pub b: View<T>,
    /// `rows × columns`.
    pub c: View<T>,
    /// From 1 to [`ROWS`].
    pub rows: usize,
    /// From 1 to the lanes of [`WIDTH`] registers.
    pub columns: usize,
    /// At least 1.
    pub depth: usize,
    /// Whether the sums are added to `c`.
    pub add: bool,
}

impl<T: Copy + std::ops::Add<Output = T>> Tile<T> {
    /// Computes it: every sum is `((0 + a₀b₀) + a₁b₁) + …`, each step rounded once, whatever the size of the tile.
    ///
    /// # Safety
    /// The CPU has AVX2 and FMA, the three are as large as said, and `c` is apart from the others.
    #[inline]
    pub unsafe fn multiply<R: Register<Element = T>>(&self) {
        macro_rules! by_size {
            ($($rows:literal)*) => {
                match (self.rows, self.columns > R::LANES) {
                    // SAFETY: the caller's promise.
                    $(($rows, false) => unsafe { multiply::<R, $rows, 1>(self) },)*
                    // SAFETY: the caller's promise.
                    $(($rows, true) => unsafe { multiply::<R, $rows, 2>(self) },)*
                    _ => unreachable!("tiles have 1 to {ROWS} rows"),
                }
            };
        }
        by_size! { 1 2 3 4 5 6 }
    }

    /// Stores rows of sums where they fill no registers of `c`.
    ///
    /// # Safety
    /// There are so many sums, in rows of `width`, and `c` is as large as said.
    #[inline(never)]
    unsafe fn store(&self, sums: *const T, width: usize) {
        for i in 0..self.rows {
            for j in 0..self.columns {
                // SAFETY: i and j are within the tile.
                unsafe {
                    let (c, sum) = (self.c.at(i, j), *sums.add(i * width + j));
                    c.write(if self.add { *c + sum } else { sum });
                }
            }
        }
    }
}

/// # Safety
/// As for [`Tile::multiply`], with this number of rows and registers in each.
#[target_feature(enable = "avx2,fma")]
unsafe fn multiply<R: Register, const ROWS: usize, const WIDTH: usize>(tile: &Tile<R::Element>) {
    let (mut a, mut b) = (tile.a.start, tile.b.start);
    let mut rows = [0; ROWS];
    for (i, row) in rows.iter_mut().enumerate() {
        *row = opaque(i as isize * tile.a.rows);
        if tile.depth >= LONG {
            _mm_prefetch::<_MM_HINT_T0>(tile.c.at(i, 0).cast());
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[R::zero(); WIDTH]; ROWS];
        for _ in 0..tile.depth {
            let mut right = [R::zero(); WIDTH];
            for (j, right) in right.iter_mut().enumerate() {
                *right = R::load(b.add(j * R::LANES));
            }
            for (sums, row) in sums.iter_mut().zip(&rows) {
                let left = R::splat(a.offset(*row));
                for (sum, right) in sums.iter_mut().zip(&right) {
                    *sum = sum.plus_product(left, *right);
                }
            }
            // Past the end after the last row.
            a = a.wrapping_offset(tile.a.columns);
            b = b.wrapping_offset(tile.b.rows);
        }
        if tile.c.columns != 1 || tile.columns != WIDTH * R::LANES {
            // A copy, so that the sums themselves need no memory.
            let sums = sums;
            return tile.store(sums.as_ptr().cast(), WIDTH * R::LANES);
        }
        for (i, sums) in sums.iter().enumerate() {
            for (j, sum) in sums.iter().enumerate() {
                let c = tile.c.at(i, j * R::LANES);
                let sum = if tile.add { R::load(c).plus(*sum) } else { *sum };
                sum.store(c);
            }
        }
    }
}

/// `x`, of which the compiler forgets how it came about: else it makes the address of each row of the one before, and
/// a tile waits for a chain of additions instead of its multiplications.
#[inline(always)]
fn opaque(mut x: isize) -> isize {
    // SAFETY: there are no instructions.
    unsafe { asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags)) };
    x
}
