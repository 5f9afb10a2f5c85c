//! Tables whose columns are neighbouring cells: [`Columns`], [`ColumnsMut`].

use std::marker::PhantomData;

/// Neighbouring cells of an input, one in each column of a table. Only one cell is a table of one column, which is contiguous.
///
/// ```
/// use minitensor_kernels::{Columns, columns};
/// let x = Columns::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3, 3);
/// let mut sums = [0.0; 3];
/// columns::sum(x, &mut sums);
/// assert_eq!(sums, [5.0, 7.0, 9.0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a, T> {
    first: *const T,
    height: usize,
    width: usize,
    /// The distance between rows, in elements.
    stride: usize,
    elements: PhantomData<&'a [T]>,
}

/// Neighbouring cells of an output, as [`Columns`].
#[derive(Debug)]
pub struct ColumnsMut<'a, T> {
    first: *mut T,
    height: usize,
    width: usize,
    stride: usize,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: it is a reference to its elements. Those between its rows, which may belong to others, are not accessed.
unsafe impl<T: Sync> Send for Columns<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Columns<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for ColumnsMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for ColumnsMut<'_, T> {}

/// An error if `elements` are too few for a table, or its rows overlap.
fn check(elements: usize, height: usize, width: usize, stride: usize) {
    assert!(stride >= width || height <= 1, "rows that do not overlap");
    let extent = if height == 0 || width == 0 { 0 } else { (height - 1) * stride + width };
    assert!(elements >= extent, "a table of {height} rows needs {extent} elements, got {elements}");
}

impl<'a, T> Columns<'a, T> {
    /// A table of `height` rows of `width` elements. The rows are `stride` elements apart.
    ///
    /// # Panics
    /// If the rows overlap, or `elements` is too short.
    pub fn new(elements: &'a [T], height: usize, width: usize, stride: usize) -> Columns<'a, T> {
        check(elements.len(), height, width, stride);
        // SAFETY: the elements are there.
        unsafe { Columns::from_raw_parts(elements.as_ptr(), height, width, stride) }
    }

    /// The table whose first element is at an address.
    ///
    /// # Safety
    /// The elements of its rows are valid for reads for `'a`.
    #[inline(always)]
    pub unsafe fn from_raw_parts(first: *const T, height: usize, width: usize, stride: usize) -> Columns<'a, T> {
        Columns { first, height, width, stride, elements: PhantomData }
    }

    /// The number of elements of each cell.
    #[inline(always)]
    pub fn height(&self) -> usize {
        self.height
    }

    /// The number of cells.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Element `i` of every cell.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline(always)]
    pub fn row(&self, i: usize) -> &'a [T] {
        assert!(i < self.height, "row {i} of a table of height {}", self.height);
        // SAFETY: the row is part of the table.
        unsafe { std::slice::from_raw_parts(self.first.add(i * self.stride), self.width) }
    }

    /// The elements of the only cell, and its result, if there is one cell and its elements are contiguous.
    #[inline(always)]
    pub fn only<'o, A>(&self, out: &'o mut [A]) -> Option<(&'a [T], &'o mut A)> {
        match out {
            [out] if self.width == 1 && (self.stride == 1 || self.height <= 1) => {
                // SAFETY: its elements are the rows, which follow each other.
                Some((unsafe { std::slice::from_raw_parts(self.first, self.height) }, out))
            }
            _ => None,
        }
    }
}

impl<'a, T> ColumnsMut<'a, T> {
    /// A table of `height` rows of `width` elements. The rows are `stride` elements apart.
    ///
    /// # Panics
    /// If the rows overlap, or `elements` is too short.
    pub fn new(elements: &'a mut [T], height: usize, width: usize, stride: usize) -> ColumnsMut<'a, T> {
        check(elements.len(), height, width, stride);
        // SAFETY: the elements are there.
        unsafe { ColumnsMut::from_raw_parts(elements.as_mut_ptr(), height, width, stride) }
    }

    /// The table whose first element is at an address.
    ///
    /// # Safety
    /// The elements of its rows are valid for reads and writes for `'a`, and nothing else refers to them. Its rows do not overlap.
    #[inline(always)]
    pub unsafe fn from_raw_parts(first: *mut T, height: usize, width: usize, stride: usize) -> ColumnsMut<'a, T> {
        ColumnsMut { first, height, width, stride, elements: PhantomData }
    }

    /// The number of elements of each cell.
    #[inline(always)]
    pub fn height(&self) -> usize {
        self.height
    }

    /// The number of cells.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Element `i` of every cell.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline(always)]
    pub fn row(&mut self, i: usize) -> &mut [T] {
        assert!(i < self.height, "row {i} of a table of height {}", self.height);
        // SAFETY: the row is part of the table, which this borrows.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(i * self.stride), self.width) }
    }

    /// The elements of the only cell, if there is one cell and its elements are contiguous.
    #[inline(always)]
    pub fn only(&mut self) -> Option<&mut [T]> {
        let is_row = self.width == 1 && (self.stride == 1 || self.height <= 1);
        // SAFETY: its elements are the rows, which follow each other.
        is_row.then(|| unsafe { std::slice::from_raw_parts_mut(self.first, self.height) })
    }

    /// The address of the first element, and the distance between rows, for several threads.
    pub(crate) fn place(&mut self) -> (*mut T, usize) {
        (self.first, self.stride)
    }
}
