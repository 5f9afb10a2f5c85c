//! Sums for few outputs: each register of windows is summed directly from an image, without packing.

use super::image::ImageLayout;
use crate::linalg::gemm::View;
use crate::linalg::gemm::tiled::{Sums, Table, Tile, by_rows, tiles_of, unrolled};
use crate::runtime::register::{Job, Register, Task, Tiled};
use crate::runtime::stop::Pace;

/// The number of registers of a row after which a thread may poll.
const PART: usize = 128;

/// `c = weight · what windows read`, or `c += …`.
pub(super) struct Direct<'a, T> {
    pub layout: &'a ImageLayout,
    /// For each column of `weight`, the offset that window 0 layout.
    pub table: &'a [usize],
    pub images: *const T,
    /// `rows × channels and taps`
    pub weight: View<T>,
    pub rows: usize,
    /// `rows × windows`
    pub c: View<T>,
    pub add: bool,
    /// True if rows of windows are computed together with the elements between them.
    pub flat: bool,
}

impl<T: Tiled> Job<T> for Direct<'_, T> {
    type Output = ();

    /// # Safety
    /// The images are initialized, `c` has the documented size, and no other task uses it.
    unsafe fn run<R: Register<Element = T>>(self) {
        for (row, rows) in tiles_of::<R>(self.rows) {
            // SAFETY: the caller's contract.
            by_rows!(R, rows, |ROWS| unsafe {
                if self.flat {
                    R::run(DirectRows::<R, _, ROWS> { of: &self, row, runs: self.layout.flat_runs() });
                } else {
                    R::run(DirectRows::<R, _, ROWS> { of: &self, row, runs: self.layout.runs(0..self.layout.count()) });
                }
            });
        }
    }
}

/// Some rows of a [`Direct`].
struct DirectRows<'a, R: Register, I, const ROWS: usize> {
    of: &'a Direct<'a, R::Element>,
    row: usize,
    runs: I,
}

impl<R: Register, I: Iterator<Item = (usize, usize, usize)>, const ROWS: usize> Task for DirectRows<'_, R, I, ROWS> {
    type Output = ();

    /// # Safety
    /// As for [`Direct`].
    #[inline(always)]
    unsafe fn run(self) {
        let Direct { table, images, weight, c, add, .. } = *self.of;
        let (a, c) = (weight.part(self.row, 0), c.part(self.row, 0));
        let mut pace = Pace::default();
        let parts = self.runs.flat_map(|(at, read, n)| {
            let most = PART * R::LANES;
            (0..n).step_by(most).map(move |i| (at + i, read + i, most.min(n - i)))
        });
        for (at, read, n) in parts {
            pace.step(n * table.len());
            let mut i = 0;
            while i < n {
                let b = Table { start: images.wrapping_add(read + i), rows: table };
                let tile = |width: usize| {
                    let columns = (width * R::LANES).min(n - i);
                    Tile { a, b, c: c.part(0, at + i), rows: ROWS, columns, depth: table.len(), add }
                };
                // The more registers a tile has, the less often it loads the weights.
                // SAFETY: the caller's contract; there are readable elements after the images.
                let width = unsafe {
                    match (n - i).div_ceil(R::LANES) {
                        8.. if ROWS == 1 => (Sums::<R, _, ROWS, 8>(&tile(8)).run(), 8).1,
                        4.. if ROWS <= 2 => (Sums::<R, _, ROWS, 4>(&tile(4)).run(), 4).1,
                        2.. => (Sums::<R, _, ROWS, 2>(&tile(2)).run(), 2).1,
                        _ => (Sums::<R, _, ROWS, 1>(&tile(1)).run(), 1).1,
                    }
                };
                i += width * R::LANES;
            }
        }
    }
}

/// `c += what windows read · yᵀ`, for few outputs.
pub(super) struct Dots<'a, T> {
    pub layout: &'a ImageLayout,
    pub table: &'a [usize],
    pub images: *const T,
    /// `outputs × windows`
    pub y: View<T>,
    pub outputs: usize,
    /// `channels and taps × outputs`
    pub c: View<T>,
}

impl<T: Tiled> Job<T> for Dots<'_, T> {
    type Output = ();

    /// # Safety
    /// As for [`Direct`].
    unsafe fn run<R: Register<Element = T>>(self) {
        let (mut pace, windows) = (Pace::default(), self.layout.count());
        for (row, rows) in tiles_of::<R>(self.table.len()) {
            for output in 0..self.outputs {
                pace.step(rows * windows);
                // SAFETY: the caller's contract.
                by_rows!(R, rows, |ROWS| unsafe { R::run(DotsRows::<R, ROWS> { of: &self, row, output }) });
            }
        }
    }
}

/// Some rows of [`Dots`], for one output.
struct DotsRows<'a, R: Register, const ROWS: usize> {
    of: &'a Dots<'a, R::Element>,
    row: usize,
    output: usize,
}

/// The number of products that a lane adds before its sum is added to others. It limits the number of consecutive
/// roundings.
const FLUSH: usize = 64;

impl<R: Register, const ROWS: usize> Task for DotsRows<'_, R, ROWS> {
    type Output = ();

    /// # Safety
    /// As for [`Direct`].
    #[inline(always)]
    unsafe fn run(self) {
        let Dots { layout, table, images, y, c, .. } = *self.of;
        // SAFETY: the caller's contract.
        unsafe {
            let y = y.at(self.output, 0).cast_const();
            let mut starts = [images; ROWS];
            unrolled!(ROWS, |i| {
                starts[i] = images.add(table[self.row + i]);
            });
            let (mut sums, mut totals, mut added) = ([R::zero(); ROWS], [R::zero(); ROWS], 0);
            let pieces = layout.runs(0..layout.count()).flat_map(|(at, read, n)| {
                let most = FLUSH * R::LANES;
                (0..n).step_by(most).map(move |i| (at + i, read + i, most.min(n - i)))
            });
            for (at, read, n) in pieces {
                let whole = n - n % R::LANES;
                for k in (0..whole).step_by(R::LANES) {
                    let window = R::load(y.add(at + k));
                    unrolled!(ROWS, |i| {
                        sums[i] = sums[i].plus_product(R::load(starts[i].add(read + k)), window);
                    });
                }
                if whole < n {
                    let window = R::load_part(y.add(at + whole), n - whole);
                    unrolled!(ROWS, |i| {
                        sums[i] = sums[i].plus_product(R::load_part(starts[i].add(read + whole), n - whole), window);
                    });
                }
                added += n.div_ceil(R::LANES);
                if added >= FLUSH {
                    added = 0;
                    unrolled!(ROWS, |i| {
                        totals[i] = totals[i].plus(sums[i]);
                        sums[i] = R::zero();
                    });
                }
            }
            unrolled!(ROWS, |i| {
                *c.at(self.row + i, self.output) += totals[i].plus(sums[i]).sum();
            });
        }
    }
}
