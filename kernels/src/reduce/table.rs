//! Tables whose columns are neighbouring cells: [`Columns`], [`ColumnsMut`].

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
    elements: &'a [T],
    height: usize,
    width: usize,
    /// The distance between rows, in elements.
    stride: usize,
}

/// Neighbouring cells of an output, as [`Columns`].
#[derive(Debug)]
pub struct ColumnsMut<'a, T> {
    elements: &'a mut [T],
    height: usize,
    width: usize,
    stride: usize,
}

/// The number of elements from the first to the last one of a table.
#[inline(always)]
fn extent(height: usize, width: usize, stride: usize) -> usize {
    if height == 0 || width == 0 { 0 } else { (height - 1) * stride + width }
}

impl<'a, T> Columns<'a, T> {
    /// A table of `height` rows of `width` elements. The rows are `stride` elements apart.
    ///
    /// # Panics
    /// If the rows overlap, or `elements` is too short.
    #[inline(always)]
    pub fn new(elements: &'a [T], height: usize, width: usize, stride: usize) -> Columns<'a, T> {
        assert!(stride >= width || height <= 1, "rows that do not overlap");
        let elements = &elements[..extent(height, width, stride)];
        Columns { elements, height, width, stride }
    }

    /// The table whose first element is at an address.
    ///
    /// # Safety
    /// All elements of the table are valid for reads for `'a`.
    #[inline(always)]
    pub unsafe fn from_raw_parts(first: *const T, height: usize, width: usize, stride: usize) -> Columns<'a, T> {
        // SAFETY: by contract.
        Columns::new(unsafe { std::slice::from_raw_parts(first, extent(height, width, stride)) }, height, width, stride)
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
    #[inline(always)]
    pub fn row(&self, i: usize) -> &'a [T] {
        &self.elements[i * self.stride..][..self.width]
    }

    /// The elements of the only cell, and its result, if there is one cell and its elements are contiguous.
    #[inline(always)]
    pub fn only<'o, A>(&self, out: &'o mut [A]) -> Option<(&'a [T], &'o mut A)> {
        match out {
            [out] if self.width == 1 && (self.stride == 1 || self.height <= 1) => Some((self.elements, out)),
            _ => None,
        }
    }
}

impl<'a, T> ColumnsMut<'a, T> {
    /// A table of `height` rows of `width` elements. The rows are `stride` elements apart.
    ///
    /// # Panics
    /// If the rows overlap, or `elements` is too short.
    #[inline(always)]
    pub fn new(elements: &'a mut [T], height: usize, width: usize, stride: usize) -> ColumnsMut<'a, T> {
        assert!(stride >= width || height <= 1, "rows that do not overlap");
        let elements = &mut elements[..extent(height, width, stride)];
        ColumnsMut { elements, height, width, stride }
    }

    /// The table whose first element is at an address.
    ///
    /// # Safety
    /// All elements of the table are valid for reads and writes for `'a`, and nothing else refers to those between the first and the
    /// last one.
    #[inline(always)]
    pub unsafe fn from_raw_parts(first: *mut T, height: usize, width: usize, stride: usize) -> ColumnsMut<'a, T> {
        // SAFETY: by contract.
        let elements = unsafe { std::slice::from_raw_parts_mut(first, extent(height, width, stride)) };
        ColumnsMut::new(elements, height, width, stride)
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
    #[inline(always)]
    pub fn row(&mut self, i: usize) -> &mut [T] {
        &mut self.elements[i * self.stride..][..self.width]
    }

    /// The elements of the only cell, if there is one cell and its elements are contiguous.
    #[inline(always)]
    pub fn only(&mut self) -> Option<&mut [T]> {
        (self.width == 1 && (self.stride == 1 || self.height <= 1)).then_some(&mut *self.elements)
    }

    /// The address of the first element, and the distance between rows, for several threads.
    pub(crate) fn place(&mut self) -> (*mut T, usize) {
        (self.elements.as_mut_ptr(), self.stride)
    }
}
