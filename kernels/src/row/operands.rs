//! [`Operands`]: the memory of one row that loops read.

use super::body::{Computed, OutOfRange, RowError, Rows};
use crate::memory::stream::prefetch;
use crate::runtime::stop::filled;

/// One row of each operand.
#[derive(Clone, Copy)]
pub struct Operands<T, const N: usize> {
    here: [*const T; N],
    /// The next row, if there is one.
    next: [*const T; N],
}

impl<T: Computed, const N: usize> Operands<T, N> {
    /// A row of each operand. Absent operands read from `zeros`, a row of zeros, so that the loops need no test.
    ///
    /// # Safety
    /// All operands have that row, with `n` elements if they have one per element.
    #[inline(always)]
    pub unsafe fn of(n: usize, row: usize, rows: &[Rows<*const T>; N], along: &[bool; N], zeros: &[T]) -> Self {
        let mut operands = Operands { here: [zeros.as_ptr(); N], next: [zeros.as_ptr(); N] };
        for k in 0..N {
            if !(rows[k].data.is_null() || along[k] && n == 0) {
                (operands.here[k], operands.next[k]) = (rows[k].row(row), rows[k].row(row + 1));
            }
        }
        operands
    }

    /// Element `position` of operand `k`, which has one value per element or one per row.
    ///
    /// # Safety
    /// The position is in the row, or it is 0.
    #[inline(always)]
    pub unsafe fn element(&self, k: usize, along: bool, position: usize) -> T {
        // SAFETY: by contract.
        unsafe { *self.here[k].wrapping_add(if along { position } else { 0 }) }
    }

    /// Prefetches these elements of the next row. The first pass over a row waits for memory, and later passes find the
    /// row in the cache: prefetching in those passes keeps the memory busy.
    #[inline(always)]
    pub fn prefetch_next(&self, along: &[bool; N], start: usize, len: usize) {
        for k in 0..N {
            if along[k] && self.next[k] != self.here[k] {
                prefetch(self.next[k].wrapping_add(start), len);
            }
        }
    }
}

/// The zeros that absent inputs and empty rows read; empty if there is no need for them.
pub fn zeros_for<T: Computed, const I: usize>(n: usize, inputs: &[Rows<*const T>; I]) -> Vec<T> {
    let is_needed = n == 0 || inputs.iter().any(|i| i.data.is_null());
    filled(T::ZERO, if is_needed { n.max(1) } else { 0 })
}

/// The positions that belong to a row of `n` elements.
///
/// # Safety
/// All positions have that row.
#[inline(always)]
pub unsafe fn positions<const X: usize>(
    n: usize,
    row: usize,
    at: &[Rows<*const i64>; X],
) -> Result<[i64; X], RowError> {
    let mut positions = [0; X];
    for x in 0..X {
        // SAFETY: the caller's contract. Other threads may write to the index, so `volatile` ensures that it is read
        // only once.
        let index = unsafe { at[x].row(row).read_volatile() };
        if index < 0 || index as usize >= n {
            return Err(RowError::OutOfRange(OutOfRange { argument: x, index, len: n }));
        }
        positions[x] = index;
    }
    Ok(positions)
}
