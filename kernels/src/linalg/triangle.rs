//! Triangular parts of matrices.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ndarray::{ArrayView2, ArrayViewMut2, Axis, s};

use crate::number::scalar::{Machine, Num};
use crate::runtime::threads::parallel_for;

/// The minimum number of elements per thread.
const GRAIN: usize = 32 * 1024;

/// Copies the columns `kept(i)` of every row `i`, and writes zeros to the others. The range may exceed the columns.
///
/// # Panics
/// If the shapes differ.
pub fn triangle<T: Machine + Num>(
    x: ArrayView2<'_, T>,
    mut out: ArrayViewMut2<'_, T>,
    kept: impl Fn(i64) -> Range<i64> + Sync,
) {
    assert_eq!(x.dim(), out.dim(), "matrices of one shape");
    let (n, rows) = (x.ncols(), (GRAIN / x.ncols().max(1)).max(1));
    let parts: Vec<_> = out.axis_chunks_iter_mut(Axis(0), rows).map(Mutex::new).collect();
    parallel_for(parts.len(), 1, |range| {
        for p in range {
            let mut part = parts[p].lock().unwrap_or_else(PoisonError::into_inner);
            for (i, mut row) in (p * rows..).zip(part.outer_iter_mut()) {
                let kept = kept(i as i64);
                let [start, end] = [kept.start, kept.end].map(|column| column.clamp(0, n as i64) as usize);
                row.slice_mut(s![..start]).fill(T::zero());
                row.slice_mut(s![start..end]).assign(&x.slice(s![i, start..end]));
                row.slice_mut(s![end..]).fill(T::zero());
            }
        }
    });
}
