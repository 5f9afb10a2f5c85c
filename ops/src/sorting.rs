//! Sorting and selection along an axis.

use minitensor::error::counted;
use minitensor::kernels::{scan, sort as order};
use minitensor::prelude::*;

use crate::column::{self, Table};
use crate::reduction::in_sum_dtype;

/// The error if there is no memory for the keys of a sort.
#[cold]
fn no_memory(n: usize) -> Error {
    Error::memory(format!("cannot allocate the keys of {}", counted(n, "element")))
}

/// The elements along an axis in ascending (or descending) order, and their original indices. The sort is stable.
#[custom_op(
    shape = (x: [.., n]) -> (values: [.., n], indices: [.., n]), axis = -1,
    dtype = (x: T) -> (T, i64),
    backward = |d_values, _| { x: scatter(d_values, indices, n) },
)]
pub fn sort<T: Real>(
    x: &[T],
    #[default = false] descending: bool,
    values: &mut [T],
    indices: &mut [i64],
) -> Result<()> {
    order::sort(x, descending, values, indices).map_err(|_| no_memory(x.len()))
}

/// The indices that sort the elements along an axis.
#[custom_op]
pub fn argsort(x: &Tensor, #[default = -1] axis: i64, #[default = false] descending: bool) -> Result<Tensor> {
    Ok(sort::call(x, axis, descending)?.1)
}

/// The `k` largest elements of every row in descending order, and their indices.
#[custom_op(
    shape = (x: [.., n]) -> (values: [.., k], indices: [.., k]) where k <= n, axis = -1,
    dtype = (x: T) -> (T, i64),
    backward = |d_values, _| { x: scatter(d_values, indices, n) },
)]
pub fn topk<T: Real>(x: &[T], k: usize, values: &mut [T], indices: &mut [i64]) -> Result<()> {
    debug_assert_eq!(k, values.len(), "one place for each of the largest");
    order::first(x, true, values, indices).map_err(|_| no_memory(x.len()))
}

/// The cumulative sum of every row; [`cumsum()`] chooses the axis.
#[custom_op(
    name = "row::cumsum", shape = (x: [.., n]) -> [.., n], axis = -1,
    backward = |d| { x: flip(row::cumsum(flip(d, -1)), -1) },
)]
pub fn row_cumsum<T: Num>(x: &[T], out: &mut [T]) {
    scan::cumsum(x, out);
}

/// The cumulative sum along an axis. Integers and booleans are added in 64 bits, as in `sum`.
#[custom_op(alias = "cumulative_sum")]
pub fn cumsum(x: &Tensor, #[default = -1] axis: i64) -> Result<Tensor> {
    let x = in_sum_dtype(x, None)?;
    match Table::of(&x, Some(&[axis]))? {
        Some(table) => table.put_back(&column::cumsum::call(&table.rows)?),
        None => row_cumsum::call(&x, axis),
    }
}
