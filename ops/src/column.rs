//! Reductions over consecutive axes that don't include the last: whole rows are combined, in memory order.

use minitensor::kernels::{columns, contiguous, scan};
use minitensor::prelude::*;
use minitensor::tensor::normalize_axis;

use crate::shape::reshape;

/// Shorter rows are reduced one column at a time.
const WIDE: usize = 8;

/// A tensor as tables, each of which is reduced to one row.
pub struct Table {
    /// `[batch, rows, columns]`.
    pub rows: Tensor,
    shape: Shape,
    axes: std::ops::Range<usize>,
}

impl Table {
    /// The tensor as tables, if the axes are consecutive and the elements after them are contiguous wide rows.
    pub fn of(x: &Tensor, axis: Option<&[i64]>) -> Result<Option<Table>> {
        let Some(axes) = axis else { return Ok(None) };
        let mut axes = axes.iter().map(|a| normalize_axis(*a, x.ndim())).collect::<Result<Vec<_>>>()?;
        axes.sort_unstable();
        let Some(first) = axes.first().copied() else { return Ok(None) };
        let axes_in_order = axes.iter().copied().eq(first..first + axes.len());
        let axes = first..first + axes.len();
        if !axes_in_order || axes.end >= x.ndim() || !x.is_contiguous() || x.numel() == 0 {
            return Ok(None);
        }
        let size = |dims: &[usize]| dims.iter().product::<usize>() as i64;
        let dims = x.shape().dims();
        let (batch, rows, width) = (size(&dims[..first]), size(&dims[axes.clone()]), size(&dims[axes.end..]));
        if width < WIDE as i64 {
            return Ok(None);
        }
        let rows = reshape::call(x, &[batch, rows, width])?;
        Ok(Some(Table { rows, shape: x.shape().clone(), axes }))
    }

    /// Reshapes the reduced tables `[batch, columns]` to the result.
    pub fn reduced(&self, out: &Tensor, keepdims: bool) -> Result<Tensor> {
        let dims = self.shape.iter().enumerate().filter(|(d, _)| keepdims || !self.axes.contains(d));
        let sizes: Vec<i64> = dims.map(|(d, n)| if self.axes.contains(&d) { 1 } else { *n as i64 }).collect();
        reshape::call(out, &sizes)
    }

    /// Reshapes tables of unchanged size to the tensor.
    pub fn put_back(&self, out: &Tensor) -> Result<Tensor> {
        reshape::call(out, &self.shape.iter().map(|n| *n as i64).collect::<Vec<_>>())
    }
}

/// Reduces a tensor: by `column` if its axes form tables, else by `row`.
pub fn reduce(
    x: &Tensor,
    axis: Option<&[i64]>,
    keepdims: bool,
    column: fn(&Tensor) -> Result<Tensor>,
    row: fn(&Tensor, Option<&[i64]>, bool) -> Result<Tensor>,
) -> Result<Tensor> {
    match Table::of(x, axis)? {
        Some(table) => table.reduced(&column(&table.rows)?, keepdims),
        None => row(x, axis, keepdims),
    }
}

/// The sum of all rows, column by column.
#[custom_op(name = "column::sum", shape = (x: [.., n, m]) -> [.., m], backward = |d| { x: d.unsqueeze(-2) })]
pub fn sum<T: Num>(x: &[T], out: &mut [T]) {
    columns::sum(x, out.len(), out);
}

/// The mean of all rows, column by column.
#[custom_op(name = "column::mean", shape = (x: [.., n, m]) -> [.., m], backward = |d| { x: d.unsqueeze(-2) / n })]
pub fn mean<T: Field>(x: &[T], out: &mut [T]) {
    columns::sum(x, out.len(), out);
    let count: T = minitensor::kernels::lit(x.len() / out.len().max(1));
    out.iter_mut().for_each(|o| *o = o.divide(count));
}

/// The product of all rows, column by column.
#[custom_op(
    name = "column::prod", shape = (x: [.., n, m]) -> [.., m],
    backward = |d| {
        let others = row::prod_of_others(x.matrix_transpose()).conj();
        x: d.unsqueeze(-2) * others.matrix_transpose(),
    },
)]
pub fn prod<T: Num>(x: &[T], out: &mut [T]) {
    columns::prod(x, out.len(), out);
}

/// The largest element of every column, or NaN if there is one. Equal elements share the gradient evenly.
#[custom_op(
    name = "column::max", shape = (x: [.., n, m]) -> [.., m] where n > 0,
    backward = |d| {
        let hit = x == out.unsqueeze(-2);
        x: d.unsqueeze(-2) * hit / sum(hit, -2, true),
    },
)]
pub fn max<T: Real>(x: &[T], out: &mut [T]) {
    columns::max(x, out.len(), out);
}

/// The smallest element of every column, or NaN if there is one. Equal elements share the gradient evenly.
#[custom_op(
    name = "column::min", shape = (x: [.., n, m]) -> [.., m] where n > 0,
    backward = |d| {
        let hit = x == out.unsqueeze(-2);
        x: d.unsqueeze(-2) * hit / sum(hit, -2, true),
    },
)]
pub fn min<T: Real>(x: &[T], out: &mut [T]) {
    columns::min(x, out.len(), out);
}

/// For every column, the index of the row with the first NaN or, without any, the first largest element.
#[custom_op(name = "column::argmax", shape = (x: [.., n, m]) -> [.., m] where n > 0, backward = none)]
pub fn argmax<T: Real>(x: &[T], out: &mut [i64]) {
    columns::argmax(x, out.len(), out);
}

/// For every column, the index of the row with the first NaN or, without any, the first smallest element.
#[custom_op(name = "column::argmin", shape = (x: [.., n, m]) -> [.., m] where n > 0, backward = none)]
pub fn argmin<T: Real>(x: &[T], out: &mut [i64]) {
    columns::argmin(x, out.len(), out);
}

/// True if any element of a column is true.
#[custom_op(name = "column::any", shape = (x: [.., n, m]) -> [.., m], backward = none)]
pub fn any<T: Element>(x: &[T], out: &mut [bool]) {
    columns::fold(x, out.len(), false, out, |any, v| any | v.truthy(), |a, b| a | b);
}

/// True if all elements of a column are true.
#[custom_op(name = "column::all", shape = (x: [.., n, m]) -> [.., m], backward = none)]
pub fn all<T: Element>(x: &[T], out: &mut [bool]) {
    columns::fold(x, out.len(), true, out, |all, v| all & v.truthy(), |a, b| a & b);
}

/// The number of nonzero elements of every column.
#[custom_op(name = "column::count_nonzero", shape = (x: [.., n, m]) -> [.., m], backward = none)]
pub fn count_nonzero<T: Element>(x: &[T], out: &mut [i64]) {
    columns::fold(x, out.len(), 0, out, |n, v| n + i64::from(v.truthy()), |a, b| a + b);
}

/// The cumulative sum of every column.
#[custom_op(
    name = "column::cumsum", shape = (x: [.., n, m]) -> [.., n, m],
    backward = |d| { x: flip(column::cumsum(flip(d, -2)), -2) },
)]
pub fn cumsum<T: Num>(x: ArrayView2<T>, out: &mut [T]) {
    scan::cumsum_columns(&contiguous(&x), x.ncols(), out);
}
