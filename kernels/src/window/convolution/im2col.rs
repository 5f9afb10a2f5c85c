//! The matrix of the values that every tap reads for every window: a row for each channel and tap, a column for each
//! window. It is never in memory as a whole; a product packs it one panel at a time.

use std::ops::Range;

use smallvec::SmallVec;

use super::image::ImageLayout;
use crate::linalg::gemm::View;
use crate::linalg::gemm::tiled::Right;
use crate::runtime::register::{Register, Task};

/// The matrix for a group's images.
pub(super) struct Im2col<'a, T> {
    pub layout: &'a ImageLayout,
    /// For each tap, the element of a channel's image that window 0 reads.
    pub taps: &'a [usize],
    /// The images of the channels of each sample, with [`ImageLayout::memory`] elements.
    pub images: *const T,
    /// The distance from the images of a sample to those of the next one.
    pub apart: usize,
    /// The index of the first column. The windows of a sample follow those of the previous sample.
    pub first: usize,
}

impl<T> Clone for Im2col<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Im2col<'_, T> {}

// SAFETY: the images are read-only.
unsafe impl<T: Sync> Send for Im2col<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Im2col<'_, T> {}

impl<T: Copy + Send + Sync> Right<T> for Im2col<'_, T> {
    fn view(&self) -> Option<View<T>> {
        None
    }

    fn without_columns(&self, first: usize) -> Self {
        Im2col { first: self.first + first, ..*self }
    }

    unsafe fn pack<R: Register<Element = T>>(&self, rows: Range<usize>, columns: Range<usize>, to: *mut T) {
        let columns = self.first + columns.start..self.first + columns.end;
        let Im2col { layout, taps, images, apart, .. } = *self;
        // SAFETY: the caller's contract.
        unsafe { R::run(Pack::<R> { layout, taps, images, apart, rows, columns, to, step: R::WIDTH * R::LANES }) }
    }
}

/// Rows of the matrix that are to be copied, `step` elements apart.
pub(super) struct Pack<'a, R: Register> {
    pub layout: &'a ImageLayout,
    pub taps: &'a [usize],
    pub images: *const R::Element,
    pub apart: usize,
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
        let Pack { layout, taps, images, apart, rows, columns, to, step } = self;
        let width = columns.len();
        // Copies of whole registers: the offset in a row, and the offset in an image.
        let mut copies = SmallVec::<[(usize, usize); 32]>::new();
        let mut column = columns.start;
        while column < columns.end {
            let (sample, first) = (column / layout.count(), column % layout.count());
            let part = first..layout.count().min(first + columns.end - column);
            for (at, read, n) in layout.runs(part.clone()) {
                let (at, read) = (column - columns.start + at, sample * apart + read);
                copies.extend((0..n).step_by(R::LANES).map(|i| (at + i, read + i)));
            }
            column += part.len();
        }
        let last = copies.last().map_or(0, |last| width - last.0);
        let (mut channel, mut tap) = (rows.start / taps.len(), rows.start % taps.len());
        // SAFETY: the caller's contract. A register may extend past the end of a run: in the image, into the memory
        // after it; in a row, into elements that are written next. After the last row, none does.
        unsafe {
            for p in 0..rows.len() {
                let (from, to) = (images.add(channel * layout.len() + taps[tap]), to.add(p * step));
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

/// Copies registers. Small numbers of registers are copied without a loop.
///
/// # Safety
/// The CPU has the instructions, and there is room for all registers.
#[inline(always)]
unsafe fn copy_all<R: Register>(from: *const R::Element, to: *mut R::Element, copies: &[(usize, usize)]) {
    macro_rules! by_number {
        ($($n:literal)*) => {
            match copies.len() {
                $($n => for i in 0..$n {
                    let (at, read) = copies[i];
                    // SAFETY: the caller's contract.
                    unsafe { R::load(from.add(read)).store(to.add(at)) };
                },)*
                _ => for (at, read) in copies {
                    // SAFETY: the caller's contract.
                    unsafe { R::load(from.add(*read)).store(to.add(*at)) };
                },
            }
        };
    }
    by_number! { 2 3 4 }
}
