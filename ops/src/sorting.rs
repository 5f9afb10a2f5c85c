//! Sorting and selection along an axis.

use minitensor::error::counted;
use minitensor::kernels::sort as order;
use minitensor::prelude::*;

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
