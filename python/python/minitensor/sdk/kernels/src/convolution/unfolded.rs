//! The matrix of what every tap reads for every window: a row for each channel and tap, a column for each window. It is
//! never in memory as a whole; a product packs it a panel at a time.

use std::ops::Range;

use smallvec::SmallVec;

use super::reads::Reads;
use crate::gemm::View;
use crate::gemm::tiled::{Register, Right, Task};

/// The matrix, of a group's images.
pub(super) struct Unfolded<'a, T> {
    pub reads: &'a Reads,
    /// The images of the channels, with as many elements as [`Reads::memory`] says.
    pub images: *const T,
    /// The window of the first column.
    pub first: usize,
}

impl<T> Clone for Unfolded<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Unfolded<'_, T> {}

// SAFETY: the images are only read.
unsafe impl<T: Sync> Send for Unfolded<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Unfolded<'_, T> {}

impl<T: Copy + Send + Sync> Right<T> for Unfolded<'_, T> {
    fn view(&self) -> Option<View<T>> {
        None
    }

    fn from_column(&self, first: usize) -> Self {
        Unfolded { first: self.first + first, ..*self }
    }

    unsafe fn pack<R: Register<Element = T>>(&self, rows: Range<usize>, columns: Range<usize>, to: *mut T) {
        let columns = self.first + columns.start..self.first + columns.end;
        let width = R::WIDTH * R::LANES;
        // SAFETY: the caller's promise.
        unsafe { R::run(Pack::<R> { reads: self.reads, images: self.images, rows, columns, to, step: width }) }
    }
}

/// Rows of the matrix, to be copied `step` elements apart.
pub(super) struct Pack<'a, R: Register> {
    pub reads: &'a Reads,
    pub images: *const R::Element,
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    pub to: *mut R::Element,
    pub step: usize,
}

impl<R: Register> Task for Pack<'_, R> {
    type Output = ();

    /// # Safety
    /// As for [`Right::pack`].
    #[inline(always)]
    unsafe fn run(self) {
        let Pack { reads, images, rows, columns, to, step } = self;
        let (taps, width) = (reads.taps(), columns.len());
        // Copies of whole registers: where in a row, and where in an image.
        let mut copies = SmallVec::<[(usize, usize); 32]>::new();
        for (at, read, n) in reads.runs(columns) {
            copies.extend((0..n).step_by(R::LANES).map(|i| (at + i, read + i)));
        }
        let last = copies.last().map_or(0, |last| width - last.0);
        let (mut channel, mut tap) = (rows.start / taps.len(), rows.start % taps.len());
        // SAFETY: the caller's promise. A register may reach past the end of a run: of the image into the memory after it, of a
        // row into what is written next. After the last row nothing is.
        unsafe {
            for p in 0..rows.len() {
                let (from, to) = (images.add(channel * reads.len() + taps[tap]), to.add(p * step));
                if width < step {
                    to.write_bytes(0, step);
                }
                if p + 1 < rows.len() {
                    copy_all::<R>(from, to, &copies);
                } else if let Some(((at, read), whole)) = copies.split_last() {
                    for (at, read) in whole {
                        R::load(from.add(*read)).store_part(to.add(*at), R::LANES.min(width - at));
                    }
                    R::load(from.add(*read)).store_part(to.add(*at), last);
                }
                tap += 1;
                if tap == taps.len() {
                    (channel, tap) = (channel + 1, 0);
                }
            }
        }
    }
}

/// Copies registers. A few of them are copied without a loop.
///
/// # Safety
/// The CPU has the instructions, and there is room for all of them.
#[inline(always)]
unsafe fn copy_all<R: Register>(from: *const R::Element, to: *mut R::Element, copies: &[(usize, usize)]) {
    macro_rules! by_number {
        ($($n:literal)*) => {
            match copies.len() {
                $($n => for i in 0..$n {
                    let (at, read) = copies[i];
                    // SAFETY: the caller's promise.
                    unsafe { R::load(from.add(read)).store(to.add(at)) };
                },)*
                _ => for (at, read) in copies {
                    // SAFETY: the caller's promise.
                    unsafe { R::load(from.add(*read)).store(to.add(*at)) };
                },
            }
        };
    }
    by_number! { 2 3 4 }
}
