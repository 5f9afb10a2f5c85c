//! Copies of parts of matrices in the order that tiles read them.

use std::ops::Range;

use super::tile::tiles_of;
use crate::linalg::gemm::View;
use crate::memory::Line;
use crate::runtime::register::{Register, Task};

/// The size in bytes from which packed rows are an odd number of cache lines apart.
const APART: usize = 1 << 10;

/// The number of elements from one packed row of `a` to the next. Long rows are so far apart that the rows of a tile are in
/// different sets of the cache.
pub(super) fn packed_step<T>(depth: usize) -> usize {
    let line = Line::len::<T>();
    if depth * size_of::<T>() < APART { depth } else { (depth.div_ceil(line) | 1) * line }
}

/// Copies `rows` rows of `a`, each `depth` long. The rows of a tile are stored in the order of [`packed_rows`], and each
/// tile starts where its first row would, at [`packed_step`] from row to row.
///
/// # Safety
/// `a` and the memory have these sizes.
pub(super) unsafe fn pack_rows<R: Register>(a: View<R::Element>, rows: usize, depth: usize, to: *mut R::Element) {
    let step = packed_step::<R::Element>(depth);
    if a.columns == 1 {
        for i in 0..rows {
            // SAFETY: row i, and its place.
            unsafe { to.add(i * step).copy_from_nonoverlapping(a.at(i, 0), depth) };
        }
        return;
    }
    // A cache line of a column has elements of several tiles.
    for p in 0..depth {
        for (row, count) in tiles_of::<R>(rows) {
            // SAFETY: elements (row.., p), and their place.
            unsafe {
                let (from, to) = (a.at(row, p), to.add(row * step + p * count));
                if a.rows == 1 {
                    copy_few(from, to, count);
                    continue;
                }
                for i in 0..count {
                    to.add(i).write(*from.offset(i as isize * a.rows));
                }
            }
        }
    }
}

/// The most elements that [`copy_few`] copies.
pub(crate) const FEW: usize = 12;

/// Copies up to [`FEW`] contiguous elements. Every count has its own branch with a constant, so there is no loop.
///
/// # Safety
/// Source and destination have `count` elements.
#[inline(always)]
pub(crate) unsafe fn copy_few<T>(from: *const T, to: *mut T, count: usize) {
    macro_rules! by_count {
        ($($n:literal)*) => {
            match count {
                // SAFETY: the caller's contract.
                $($n => unsafe { to.copy_from_nonoverlapping(from, $n) },)*
                _ => unreachable!("a tile has up to 12 rows"),
            }
        };
    }
    by_count! { 1 2 3 4 5 6 7 8 9 10 11 12 }
}

/// The view of packed rows of `a`: row by row if `a` is row-major, else column by column.
pub(super) fn packed_rows<T: Copy>(a: View<T>, rows: usize, depth: usize, start: *mut T) -> View<T> {
    if a.columns == 1 {
        View { start, rows: packed_step::<T>(depth) as isize, columns: 1 }
    } else {
        View { start, rows: 1, columns: rows as isize }
    }
}

/// The right matrix of a product. Tiles read it one panel at a time.
pub(crate) trait Right<T: Copy>: Copy + Send + Sync {
    /// The matrix, if it is in memory.
    fn view(&self) -> Option<View<T>>;

    /// The matrix without its first columns.
    fn without_columns(&self, first: usize) -> Self;

    /// Copies some rows of a panel. The rows fill the registers of a tile and are contiguous; values after the last
    /// column are arbitrary.
    ///
    /// # Safety
    /// The CPU has the instructions of `R`, the matrix has these rows and columns, and the memory holds as many rows of
    /// [`Register::WIDTH`] registers.
    unsafe fn pack<R: Register<Element = T>>(&self, rows: Range<usize>, columns: Range<usize>, to: *mut T);
}

impl<T: Copy + Send + Sync> Right<T> for View<T> {
    fn view(&self) -> Option<View<T>> {
        Some(*self)
    }

    fn without_columns(&self, first: usize) -> Self {
        self.part(0, first)
    }

    unsafe fn pack<R: Register<Element = T>>(&self, rows: Range<usize>, columns: Range<usize>, to: *mut T) {
        let b = self.part(rows.start, columns.start);
        // SAFETY: the caller's contract.
        unsafe { R::run(Panel::<R> { b, columns: columns.len(), depth: rows.len(), to }) }
    }
}

/// A panel of a matrix in memory that is to be packed, with zeros after its last column.
struct Panel<R: Register> {
    b: View<R::Element>,
    columns: usize,
    depth: usize,
    to: *mut R::Element,
}

impl<R: Register> Task for Panel<R> {
    type Output = ();

    /// # Safety
    /// As for [`Right::pack`].
    #[inline(always)]
    unsafe fn run(self) {
        let Panel { b, columns, depth, to } = self;
        let width = R::WIDTH * R::LANES;
        let packed = View { start: to, rows: width as isize, columns: 1 };
        let (mut start, zero) = (0, R::Element::default());
        // SAFETY: the caller's contract: rows are below `depth`, columns of `b` below `columns`.
        unsafe {
            if b.columns == 1 {
                for p in 0..depth {
                    for j in (0..width).step_by(R::LANES) {
                        let part = columns.saturating_sub(j);
                        let from = b.at(p, j);
                        let row = if part >= R::LANES { R::load(from) } else { R::load_part(from, part) };
                        row.store(packed.at(p, j));
                    }
                }
                return;
            }
            if b.rows == 1 {
                start = depth - depth % R::LANES;
                for j in (0..width).step_by(R::LANES) {
                    let part = columns.saturating_sub(j).min(R::LANES);
                    // A square of columns: the existing ones, then zeros.
                    let mut square = [zero; 16 * 16];
                    for p in (0..start).step_by(R::LANES) {
                        if part == R::LANES {
                            R::transpose(b.at(p, j), b.columns, packed.at(p, j), width);
                            continue;
                        }
                        for i in 0..part {
                            R::load(b.at(p, j + i)).store(square.as_mut_ptr().add(i * R::LANES));
                        }
                        R::transpose(square.as_ptr(), R::LANES as isize, packed.at(p, j), width);
                    }
                }
            }
            for p in start..depth {
                for j in 0..width {
                    packed.at(p, j).write(if j < columns { *b.at(p, j) } else { zero });
                }
            }
        }
    }
}
