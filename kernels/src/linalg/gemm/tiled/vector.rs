//! Products of a matrix and a vector, and of few rows, at the speed of memory.

use std::ops::Range;

use super::memory::{SHARED, with_memory};
use crate::linalg::gemm::View;
use crate::memory::copy::copy_row;
use crate::runtime::register::{Register, Task};
use crate::runtime::stop::{Pace, poll};
use crate::runtime::threads::parallel_for;

/// The minimum number of matrix elements per thread.
const GRAIN: usize = 1 << 16;
/// The maximum number of elements of a strided vector that are copied to contiguous memory.
pub(super) const MOST: usize = 1 << 20;
/// If there are few results, each is computed in pieces that threads share: of about this many elements of the matrix,
/// and at most [`PIECES`] of them.
const PIECE: usize = 1 << 16;
const PIECES: usize = 32;
/// The number of results that counts as few, if each is the sum over a row.
const FEW_ROWS: usize = 8;
/// The number of elements of a column that is worth reading at once. For column-wise products, fewer results than this
/// count as few.
const LONG: usize = 1 << 10;
/// The number of rows or columns that are read at a time: the number of streams that memory serves at once.
const ROWS: usize = 4;
const COLUMNS: usize = 8;
/// The number of elements of a row after which a thread polls.
const LONGEST: usize = 1 << 20;

/// `y = a · x`, where `a` is `m × k` and its rows or its columns are contiguous.
///
/// # Safety
/// As for `Gemm::multiply`, with at least one element in each, on a CPU with the instructions of `R`.
pub(super) unsafe fn multiply<R: Register>(
    (m, k): (usize, usize),
    a: View<R::Element>,
    x: (*mut R::Element, isize),
    y: (*mut R::Element, isize),
) {
    let by_rows = a.columns == 1;
    let few = m < if by_rows { FEW_ROWS } else { LONG };
    let piece = if few { (PIECE / m).max(k.div_ceil(PIECES)).min(k) } else { k };
    let pieces = k.div_ceil(piece);
    let own_x = if x.1 == 1 { 0 } else { k };
    // Each piece has its own sums, unless they are the results.
    let own_y = if pieces == 1 && y.1 == 1 { 0 } else { pieces * m };
    with_memory(&SHARED, own_x + own_y, |memory: *mut R::Element| {
        let sums = memory.wrapping_add(own_x);
        let shared = Shared::<R> { a, x: if own_x > 0 { memory } else { x.0 }, y: if own_y > 0 { sums } else { y.0 } };
        if own_x > 0 {
            // SAFETY: k elements.
            unsafe { copy_row(x.0.cast_const(), x.1, memory, 1, k) };
        }
        let grain = (GRAIN / piece.min(GRAIN)).max(1);
        let grain = if by_rows { grain.next_multiple_of(ROWS) } else { grain.max(LONG) };
        let parts = m.div_ceil(grain);
        parallel_for(pieces * parts, 1, |range| {
            let mut pace = Pace::default();
            for (number, part) in range.map(|task| (task / parts, task % parts)) {
                let piece = number * piece..((number + 1) * piece).min(k);
                let rows = part * grain..((part + 1) * grain).min(m);
                let y = shared.y().wrapping_add(number * m);
                pace.step(rows.len() * piece.len());
                // SAFETY: one task for each sum.
                unsafe { Part { shared: &shared, rows, piece, y }.multiply(by_rows) };
            }
        });
        if own_y > 0 {
            for i in 0..m {
                // SAFETY: the sums are initialized, and element i of y exists.
                unsafe {
                    let mut sum = *sums.add(i);
                    for piece in 1..pieces {
                        sum += *sums.add(piece * m + i);
                    }
                    y.0.offset(i as isize * y.1).write(sum);
                }
            }
        }
    });
}

/// True if [`multiply_few`] is the faster method, for a `c` with contiguous rows: the sums are too short for the fixed costs of a
/// tile.
pub(super) fn is_few<T>((_, n, k): (usize, usize, usize), a: &View<T>, b: &View<T>) -> bool {
    k <= 2 && n >= 64 && (a.columns == 1 || k == 1) && b.columns == 1
}

/// `c = a · b`: adds multiples of the rows of `b` to each row of `c`.
///
/// # Safety
/// As for [`multiply`], if [`is_few`] returns true. The rows of `c` are contiguous.
pub(super) unsafe fn multiply_few<R: Register>(
    (m, n, k): (usize, usize, usize),
    a: View<R::Element>,
    b: View<R::Element>,
    c: View<R::Element>,
) {
    parallel_for(m, (GRAIN / n).max(1), |rows| {
        let mut pace = Pace::default();
        for i in rows {
            pace.step(n);
            let shared = Shared::<R> { a: b.transposed(), x: a.at(i, 0), y: c.at(i, 0) };
            // SAFETY: the caller's contract; no other call writes to row i.
            unsafe { Part { shared: &shared, rows: 0..n, piece: 0..k, y: shared.y }.multiply(false) };
        }
    });
}

/// The data that all tasks read and the memory that they write.
struct Shared<R: Register> {
    a: View<R::Element>,
    x: *mut R::Element,
    y: *mut R::Element,
}

// SAFETY: tasks write to different elements of `y`, and read only data that no task writes.
unsafe impl<R: Register> Sync for Shared<R> {}

impl<R: Register> Shared<R> {
    fn y(&self) -> *mut R::Element {
        self.y
    }
}

/// A piece of each of some rows.
struct Part<'a, R: Register> {
    shared: &'a Shared<R>,
    rows: Range<usize>,
    piece: Range<usize>,
    /// An element for each row of the matrix.
    y: *mut R::Element,
}

impl<R: Register> Part<'_, R> {
    /// # Safety
    /// As for [`multiply`].
    unsafe fn multiply(self, by_rows: bool) {
        // SAFETY: the caller's contract.
        unsafe { if by_rows { R::run(ByRow(self)) } else { R::run(ByColumn(self)) } }
    }
}

/// Adds several rows at a time.
struct ByRow<'a, R: Register>(Part<'a, R>);

impl<R: Register> Task for ByRow<'_, R> {
    type Output = ();

    /// # Safety
    /// As for [`multiply`].
    #[inline(always)]
    unsafe fn run(self) {
        let Part { shared, rows, piece, y } = self.0;
        let mut row = rows.start;
        // SAFETY: the caller's contract.
        unsafe {
            while row + ROWS <= rows.end {
                dots::<R, ROWS>(shared, row, &piece, y);
                row += ROWS;
            }
            for row in row..rows.end {
                dots::<R, 1>(shared, row, &piece, y);
            }
        }
    }
}

/// Adds multiples of several columns at a time.
struct ByColumn<'a, R: Register>(Part<'a, R>);

impl<R: Register> Task for ByColumn<'_, R> {
    type Output = ();

    /// # Safety
    /// As for [`multiply`].
    #[inline(always)]
    unsafe fn run(self) {
        let Part { shared, rows, piece, y } = self.0;
        let mut column = piece.start;
        let mut pace = Pace::default();
        // SAFETY: the caller's contract.
        unsafe {
            while column + COLUMNS <= piece.end {
                pace.step(COLUMNS * rows.len());
                gather::<R, COLUMNS>(shared, &rows, column, y, column > piece.start);
                column += COLUMNS;
            }
            for column in column..piece.end {
                gather::<R, 1>(shared, &rows, column, y, column > piece.start);
            }
        }
    }
}

/// Sums over a piece of each of `N` rows, in two parts for each lane.
///
/// # Safety
/// As for [`multiply`].
#[inline(always)]
unsafe fn dots<R: Register, const N: usize>(shared: &Shared<R>, row: usize, piece: &Range<usize>, y: *mut R::Element) {
    let Shared { a, x, .. } = shared;
    let step = 2 * R::LANES;
    let whole = piece.end - piece.len() % step;
    // SAFETY: the caller's contract.
    unsafe {
        let mut sums = [[R::zero(); 2]; N];
        for start in (piece.start..whole).step_by(LONGEST) {
            if start > piece.start {
                poll();
            }
            for p in (start..whole.min(start + LONGEST)).step_by(step) {
                for half in 0..2 {
                    let p = p + half * R::LANES;
                    let x = R::load(x.add(p));
                    for (i, sums) in sums.iter_mut().enumerate() {
                        sums[half] = sums[half].plus_product(R::load(a.at(row + i, p)), x);
                    }
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            let mut sum = sums[0].plus(sums[1]).sum();
            for p in whole..piece.end {
                sum += *a.at(row + i, p) * *x.add(p);
            }
            y.add(row + i).write(sum);
        }
    }
}

/// Adds multiples of `N` columns to the sums, or writes them if they are the first.
///
/// # Safety
/// As for [`multiply`].
#[inline(always)]
unsafe fn gather<R: Register, const N: usize>(
    shared: &Shared<R>,
    rows: &Range<usize>,
    column: usize,
    y: *mut R::Element,
    add: bool,
) {
    let Shared { a, x, .. } = shared;
    let whole = rows.end - rows.len() % R::LANES;
    // SAFETY: the caller's contract.
    unsafe {
        let mut factors = [R::zero(); N];
        for (j, factor) in factors.iter_mut().enumerate() {
            *factor = R::splat(x.add(column + j));
        }
        for i in (rows.start..whole).step_by(R::LANES) {
            let mut sum = if add { R::load(y.add(i)) } else { R::zero() };
            for (j, factor) in factors.iter().enumerate() {
                sum = sum.plus_product(R::load(a.at(i, column + j)), *factor);
            }
            sum.store(y.add(i));
        }
        for i in whole..rows.end {
            let mut sum = if add { *y.add(i) } else { R::Element::default() };
            for j in 0..N {
                sum += *a.at(i, column + j) * *x.add(column + j);
            }
            y.add(i).write(sum);
        }
    }
}
