//! Sums over the outermost axes: rows are added to rows, as they lie in memory.

use std::sync::{Mutex, PoisonError};

use minitensor::kernels::threads::parallel_for;
use minitensor::prelude::*;
use minitensor::tensor::normalize_axis;
use ndarray::{Axis, s};

use crate::shape::reshape;

/// Shorter rows are added up column by column.
const WIDE: usize = 8;

/// How many axes are reduced, if they are the outermost ones and wide rows lie behind them in order.
pub fn leading(x: &Tensor, axis: Option<&[i64]>) -> Result<Option<usize>> {
    let Some(axes) = axis else { return Ok(None) };
    let mut axes = axes.iter().map(|a| normalize_axis(*a, x.ndim())).collect::<Result<Vec<_>>>()?;
    axes.sort_unstable();
    let width: usize = x.shape()[axes.len().min(x.ndim())..].iter().product();
    let is_leading = !axes.is_empty() && axes.len() < x.ndim() && axes.iter().copied().eq(0..axes.len());
    Ok((is_leading && width >= WIDE && x.is_contiguous()).then_some(axes.len()))
}

/// The sum over that many outermost axes.
pub fn sum_over(x: &Tensor, count: usize, keepdims: bool) -> Result<Tensor> {
    let (outer, inner) = x.shape().split_at(count);
    let (rows, width): (usize, usize) = (outer.iter().product(), inner.iter().product());
    let sums = column_sum::call(&reshape::call(x, &[rows as i64, width as i64])?)?;
    let kept = outer.iter().filter(|_| keepdims).map(|_| 1);
    let sizes: Vec<i64> = kept.chain(inner.iter().map(|n| *n as i64)).collect();
    reshape::call(&sums, &sizes)
}

/// The sum of all rows, column by column.
#[custom_op(name = "column::sum", shape = (x: [.., m, n]) -> [.., n], backward = |d| { x: d.unsqueeze(-2) })]
pub fn column_sum<T: Num>(x: ArrayView2<T>, out: &mut [T]) {
    let parts: Vec<Mutex<&mut [T]>> = out.chunks_mut(COLUMNS).map(Mutex::new).collect();
    let grain = (ELEMENTS / (COLUMNS * x.nrows().max(1))).max(1);
    parallel_for(parts.len(), grain, |range| {
        for k in range {
            let mut out = parts[k].lock().unwrap_or_else(PoisonError::into_inner);
            let end = k * COLUMNS + out.len();
            add_rows(x.slice(s![.., k * COLUMNS..end]), &mut out);
        }
    });
}

/// Columns that are added up together, and elements that are worth a thread.
const COLUMNS: usize = 256;
const ELEMENTS: usize = 64 * 1024;
/// Rows that are added one after the other; more are added pairwise.
const ROWS: usize = 32;

fn add_rows<T: Num + Machine>(x: ArrayView2<T>, out: &mut [T]) {
    if x.nrows() > ROWS {
        let (first, second) = x.split_at(Axis(0), x.nrows() / 2);
        let mut others = [T::zero(); COLUMNS];
        let others = &mut others[..out.len()];
        add_rows(first, out);
        add_rows(second, others);
        for (o, v) in out.iter_mut().zip(others) {
            *o += *v;
        }
        return;
    }
    out.fill(T::zero());
    for row in x.outer_iter() {
        match row.as_slice() {
            Some(row) => out.iter_mut().zip(row).for_each(|(o, v)| *o += *v),
            None => out.iter_mut().zip(row).for_each(|(o, v)| *o += *v),
        }
    }
}
