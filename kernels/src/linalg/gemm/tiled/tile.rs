//! Tiles of a product. The sums stay in registers from the first multiplication to the last.

use std::arch::asm;

use crate::linalg::gemm::View;
use crate::runtime::register::{Register, Task};

/// The minimum number of multiplications per sum for which prefetching `c` is worthwhile.
const LONG: usize = 64;

/// The first row and the number of rows of each tile. Tiles of nearly equal size waste the least.
#[inline]
pub(crate) fn tiles_of<R: Register>(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let tiles = rows.div_ceil(R::ROWS);
    let (least, longer) = (rows / tiles, rows % tiles);
    (0..tiles).map(move |tile| (tile * least + tile.min(longer), least + usize::from(tile < longer)))
}

/// The rows of the right matrix of a tile, which are read in whole registers.
pub(crate) trait Rows<T>: Copy {
    /// A pointer to row `p`.
    fn row(self, p: usize) -> *const T;
}

impl<T: Copy> Rows<T> for View<T> {
    #[inline(always)]
    fn row(self, p: usize) -> *const T {
        self.start.wrapping_offset(p as isize * self.rows).cast_const()
    }
}

/// Rows at arbitrary places, given by their offsets in elements from `start`.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a, T> {
    pub start: *const T,
    pub rows: &'a [usize],
}

impl<T: Copy> Rows<T> for Table<'_, T> {
    #[inline(always)]
    fn row(self, p: usize) -> *const T {
        // SAFETY: a tile is no deeper than the table.
        self.start.wrapping_add(unsafe { *self.rows.get_unchecked(p) })
    }
}

/// Runs `$body` with the constant `$n`, which is the number of rows of a tile.
macro_rules! by_rows {
    ($register:ty, $rows:expr, |$n:ident| $body:expr) => {
        by_rows! { $register, $rows, $n, $body, 1 2 3 4 5 6 7 8 9 10 11 12 }
    };
    ($register:ty, $rows:expr, $n:ident, $body:expr, $($value:literal)*) => {
        match $rows {
            $($value if $value <= <$register>::ROWS => {
                const $n: usize = $value;
                $body
            })*
            _ => unreachable!("a tile has 1 to {} rows", <$register>::ROWS),
        }
    };
}
pub(crate) use by_rows;

/// Runs `$body` for every `$i` below the constant `$n`, without a loop: LLVM keeps an array in registers only if it is
/// indexed by constants.
macro_rules! unrolled {
    ($n:expr, |$i:ident| $body:block) => {
        unrolled! { $n, $i, $body, 0 1 2 3 4 5 6 7 8 9 10 11 }
    };
    ($n:expr, $i:ident, $body:block, $($value:literal)*) => {$(
        if $value < $n {
            #[allow(non_upper_case_globals)]
            const $i: usize = $value;
            $body
        }
    )*};
}

pub(crate) use unrolled;

/// A tile `c = a · b`, or `c += a · b`.
pub(crate) struct Tile<T, B = View<T>> {
    /// `rows × depth`.
    pub a: View<T>,
    /// `depth` rows of as many contiguous columns as fill the registers.
    pub b: B,
    /// `rows × columns`.
    pub c: View<T>,
    /// From 1 to [`Register::ROWS`].
    pub rows: usize,
    /// From 1 to the lanes of [`Register::WIDTH`] registers.
    pub columns: usize,
    /// At least 1.
    pub depth: usize,
    /// True if the sums are added to `c`.
    pub add: bool,
}

impl<T: Copy + std::ops::Add<Output = T>, B: Rows<T>> Tile<T, B> {
    /// Computes the tile. Every sum is `((0 + a₀b₀) + a₁b₁) + …` with each step rounded once, for every size of the
    /// tile.
    ///
    /// # Safety
    /// The CPU has the instructions of `R`, the three matrices have these sizes, and `c` doesn't overlap the others.
    #[inline]
    pub unsafe fn multiply<R: Register<Element = T>>(&self) {
        // SAFETY: the caller's contract.
        by_rows!(R, self.rows, |ROWS| unsafe {
            if self.columns > R::LANES {
                R::run(Sums::<R, B, ROWS, 2>(self));
            } else {
                R::run(Sums::<R, B, ROWS, 1>(self));
            }
        });
    }

    /// Stores rows of sums in a `c` whose columns are not contiguous.
    ///
    /// # Safety
    /// There are `rows` rows of sums, `width` apart, and `c` has the size of the tile.
    #[inline(never)]
    unsafe fn scatter(&self, sums: *const T, width: usize) {
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

/// The sums of a tile of `ROWS` rows with `WIDTH` registers each.
pub(crate) struct Sums<'a, R: Register, B, const ROWS: usize, const WIDTH: usize>(pub &'a Tile<R::Element, B>);

/// The number of rows of `a` per pointer: 0, 1 and 2 strides from it, which an x86 address can express.
const STRIDES: usize = 3;

impl<R: Register, B: Rows<R::Element>, const ROWS: usize, const WIDTH: usize> Task for Sums<'_, R, B, ROWS, WIDTH> {
    type Output = ();

    /// # Safety
    /// As for [`Tile::multiply`].
    #[inline(always)]
    unsafe fn run(self) {
        let tile = self.0;
        if tile.depth >= LONG {
            (0..ROWS).for_each(|i| prefetch(tile.c.at(i, 0)));
        }
        let stride = opaque(tile.a.rows * size_of::<R::Element>() as isize);
        let mut rows = [0; ROWS];
        unrolled!(ROWS, |i| {
            if i.is_multiple_of(STRIDES) {
                rows[i] = opaque(tile.a.at(i, 0) as isize);
            }
        });
        let step = tile.a.columns * size_of::<R::Element>() as isize;
        // SAFETY: the caller's contract.
        unsafe {
            let mut sums = [[R::zero(); WIDTH]; ROWS];
            for p in 0..tile.depth {
                let b = tile.b.row(p);
                let mut right = [R::zero(); WIDTH];
                for (j, right) in right.iter_mut().enumerate() {
                    *right = R::load(b.add(j * R::LANES));
                }
                unrolled!(ROWS, |i| {
                    let a = rows[i / STRIDES * STRIDES] + (i % STRIDES) as isize * stride;
                    let left = R::splat(std::ptr::with_exposed_provenance(a as usize));
                    for (sum, right) in sums[i].iter_mut().zip(&right) {
                        *sum = sum.plus_product(left, *right);
                    }
                });
                // After the last row, this is past the end.
                unrolled!(ROWS, |i| {
                    if i.is_multiple_of(STRIDES) {
                        rows[i] = rows[i].wrapping_add(step);
                    }
                });
            }
            if tile.c.columns != 1 {
                // A copy, so that the sums themselves stay in registers.
                let sums = sums;
                return tile.scatter(sums.as_ptr().cast(), WIDTH * R::LANES);
            }
            let part = tile.columns - (WIDTH - 1) * R::LANES;
            unrolled!(ROWS, |i| {
                for (j, sum) in sums[i].iter().enumerate() {
                    let c = tile.c.at(i, j * R::LANES);
                    if j + 1 == WIDTH && part < R::LANES {
                        let sum = if tile.add { R::load_part(c, part).plus(*sum) } else { *sum };
                        sum.store_part(c, part);
                    } else {
                        let sum = if tile.add { R::load(c).plus(*sum) } else { *sum };
                        sum.store(c);
                    }
                }
            });
        }
    }
}

/// Prefetches the cache line of an element.
#[inline(always)]
fn prefetch<T>(element: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every CPU of the target has the instruction, and it does not fault.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(element.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = element;
}

/// Returns `x`, with its origin hidden from the compiler. Otherwise the compiler computes the address of each row from
/// that of the row before, and a tile waits for a chain of additions instead of its multiplications.
#[inline(always)]
fn opaque(mut x: isize) -> isize {
    // SAFETY: there are no instructions.
    unsafe { asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags)) };
    x
}
