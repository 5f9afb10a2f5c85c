//! Order along an axis.

use std::cmp::Ordering;

use minitensor::prelude::*;
use minitensor::tensor::try_vec;

/// Ascending, NaN last.
fn ascending<T: Real + Machine + PartialOrd>(a: T, b: T) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.isnan().cmp(&b.isnan()))
}

/// The positions of a row's elements in order; equal ones keep theirs, NaN comes last, or first when descending.
fn order<T: Real + Machine + PartialOrd>(x: &[T], descending: bool) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = try_vec(x.len())?;
    order.extend(0..x.len());
    match descending {
        false => order.sort_by(|a, b| ascending(x[*a], x[*b])),
        true => order.sort_by(|a, b| ascending(x[*b], x[*a])),
    }
    Ok(order)
}

/// The elements along an axis in ascending (or descending) order, and where they stood; equal ones keep their order.
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
    for ((v, i), at) in values.iter_mut().zip(indices).zip(order(x, descending)?) {
        *v = x[at];
        *i = at as i64;
    }
    Ok(())
}

/// Where the elements along an axis would stand in order.
#[custom_op]
pub fn argsort(x: &Tensor, #[default = false] descending: bool, #[default = -1] axis: i64) -> Result<Tensor> {
    Ok(sort::call(x, descending, axis)?.1)
}

/// The `k` largest elements of every row, descending, and where they stood.
#[custom_op(
    shape = (x: [.., n]) -> (values: [.., k], indices: [.., k]) where k <= n, axis = -1,
    dtype = (x: T) -> (T, i64),
    backward = |d_values, _| { x: scatter(d_values, indices, n) },
)]
pub fn topk<T: Real>(x: &[T], k: usize, values: &mut [T], indices: &mut [i64]) -> Result<()> {
    for ((v, i), at) in values.iter_mut().zip(indices).zip(order(x, true)?.into_iter().take(k)) {
        *v = x[at];
        *i = at as i64;
    }
    Ok(())
}

/// The sum of all elements up to each one, along an axis.
#[custom_op(
    alias = "cumulative_sum", shape = (x: [.., n]) -> [.., n], axis = -1,
    backward = |d| { x: flip(cumsum(flip(d, -1)), -1) },
)]
pub fn cumsum<T: Num>(x: &[T], out: &mut [T]) {
    let mut total = T::zero();
    for (o, v) in out.iter_mut().zip(x) {
        total += *v;
        *o = total;
    }
}
