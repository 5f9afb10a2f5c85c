//! Copies cells between memory, where the elements of a cell are contiguous, and lanes, where the cells of an element are.

use std::ops::Range;

use minitensor_kernels::cell::Differentiable;

use super::arguments::Cores;

/// The side of the blocks in which cells are transposed, so that elements that are near in memory are accessed together.
/// The number of lanes is a multiple of it.
pub const SIDE: usize = 16;

/// Some elements of some cells.
pub type Block<T> = [[T; SIDE]; SIDE];

/// The elements and the cells of each block.
pub fn blocks(numel: usize, cells: Range<usize>) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let parts = |range: Range<usize>| {
        let end = range.end;
        range.step_by(SIDE).map(move |start| start..end.min(start + SIDE))
    };
    parts(0..numel).flat_map(move |elements| parts(cells.clone()).map(move |cells| (elements.clone(), cells)))
}

#[inline(always)]
fn transposed<T: Copy>(block: &Block<T>) -> Block<T> {
    let mut result = *block;
    for (i, row) in block.iter().enumerate() {
        for (j, value) in row.iter().enumerate() {
            result[j][i] = *value;
        }
    }
    result
}

impl<T: Differentiable> Cores<'_, T> {
    /// Reads a block, with a row for each element.
    ///
    /// # Safety
    /// The cells have these elements.
    #[inline(always)]
    pub unsafe fn read(&self, elements: Range<usize>, cells: Range<usize>) -> Block<T> {
        let mut block = [[T::zero(); SIDE]; SIDE];
        let is_whole = self.is_contiguous() && elements.len() == SIDE;
        for (row, cell) in block.iter_mut().zip(cells) {
            // SAFETY: by the contract of this function.
            unsafe {
                match is_whole {
                    true => *row = self.place(cell, elements.start).cast::<[T; SIDE]>().read(),
                    false => row.iter_mut().zip(elements.clone()).for_each(|(x, at)| *x = self.place(cell, at).read()),
                }
            }
        }
        transposed(&block)
    }

    /// Writes a block with a row for each element, or adds it to a sum over cells.
    ///
    /// # Safety
    /// As for [`Cores::read`]. A sum is initialized.
    #[inline(always)]
    pub unsafe fn write(&self, elements: Range<usize>, cells: Range<usize>, block: &Block<T>, is_shared: bool) {
        let block = transposed(block);
        let is_whole = self.is_contiguous() && elements.len() == SIDE && !is_shared;
        for (row, cell) in block.iter().zip(cells) {
            // SAFETY: by the contract of this function.
            unsafe {
                match is_whole {
                    true => self.place(cell, elements.start).cast::<[T; SIDE]>().write(*row),
                    false => row.iter().zip(elements.clone()).for_each(|(x, at)| self.give(cell, at, *x, is_shared)),
                }
            }
        }
    }

    /// Writes an element, or adds it to a sum over cells.
    ///
    /// # Safety
    /// The cell has the element. It is initialized if it is a sum.
    #[inline(always)]
    pub unsafe fn give(&self, cell: usize, at: usize, value: T, is_shared: bool) {
        let place = self.place(cell, at);
        // SAFETY: by the contract of this function.
        unsafe { place.write(if is_shared { place.read() + value } else { value }) }
    }
}
