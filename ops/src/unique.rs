//! The distinct elements of a tensor.
//!
//! Zeros of both signs are equal, and every NaN is distinct, as in the Array API. With `size`, the number of values does not
//! depend on the elements, as in JAX: surplus values are cut, and missing values are filled. The inverse index of a value that
//! was cut is `size` or more.

use minitensor::prelude::*;

use crate::joining::expect_number;

/// The distinct elements in ascending order. With `size`, the result has exactly `size` of them: the last ones are cut, or
/// missing ones are filled with `fill_value`, by default the smallest element.
#[custom_op(dtype = (x: T) -> (values: T))]
pub fn unique_values(x: &Tensor, size: Option<usize>, fill_value: Option<f64>) -> Result<Tensor> {
    values(&runs(x, size)?, fill_value)
}

/// The values of [`unique_values()`], and how often each occurs. The counts of missing values are 0.
#[custom_op(dtype = (x: T) -> (values: T, counts: i64))]
pub fn unique_counts(x: &Tensor, size: Option<usize>, fill_value: Option<f64>) -> Result<(Tensor, Tensor)> {
    let runs = runs(x, size)?;
    Ok((values(&runs, fill_value)?, counts(&runs.bounds)?))
}

/// The values of [`unique_values()`], and for each element of `x` the index of its value.
#[custom_op(dtype = (x: T) -> (values: T, inverse_indices: i64))]
pub fn unique_inverse(x: &Tensor, size: Option<usize>, fill_value: Option<f64>) -> Result<(Tensor, Tensor)> {
    let runs = runs(x, size)?;
    Ok((values(&runs, fill_value)?, inverse_indices(x, &runs.order, &runs.is_first)?))
}

/// The values of [`unique_values()`], the index of the first occurrence of each in the flattened `x`, for each element of `x`
/// the index of its value, and how often each value occurs. Missing values have the index of the smallest element, and the
/// count 0.
#[custom_op(dtype = (x: T) -> (values: T, indices: i64, inverse_indices: i64, counts: i64))]
pub fn unique_all(
    x: &Tensor,
    size: Option<usize>,
    fill_value: Option<f64>,
) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    let runs = runs(x, size)?;
    let fill_index = (x.numel() == 0).then_some(0.0);
    Ok((
        values(&runs, fill_value)?,
        firsts(&runs.order, &runs.bounds, fill_index)?,
        inverse_indices(x, &runs.order, &runs.is_first)?,
        counts(&runs.bounds)?,
    ))
}

/// Sorted elements, in which equal ones form a run.
struct Runs {
    sorted: Tensor,
    /// The original index of each element.
    order: Tensor,
    /// Whether an element is the first of its run.
    is_first: Tensor,
    /// The start of each run, then the end of the last one. Missing runs are empty, at the end.
    bounds: Tensor,
}

/// The runs of the elements of `x`: `size` of them, or all.
#[op_fn]
fn runs(x: &Tensor, size: Option<usize>) -> Result<Runs> {
    let n = x.numel() as i64;
    let (sorted, order): (Tensor, Tensor) = sort_row(&x.reshape(n)?)?;
    let differs = sorted[1..].not_equal(&sorted[..-1])?;
    let is_first = differs.pad([n.min(1), 0], 1.0)?;
    let bounds = match size {
        Some(size) => is_first.nonzero(size + 1, n)?.reshape(-1)?,
        None => is_first.nonzero()?.reshape(-1)?.pad([0, 1], n as f64)?,
    };
    Ok(Runs { sorted, order, is_first, bounds })
}

/// The elements of a row in ascending order, and their original indices. The sort is stable. Complex numbers are sorted by
/// their real parts, and those with equal ones by their imaginary parts.
#[op_fn]
fn sort_row(row: &Tensor) -> Result<(Tensor, Tensor)> {
    if row.dtype().is_complex() {
        let by_imag = row.imag().argsort()?;
        let order = by_imag.gather(row.real().gather(&by_imag).argsort())?;
        Ok((row.gather(&order)?, order))
    } else if row.dtype() == DType::Bool {
        let (sorted, order) = row.astype(DType::U8).sort()?;
        Ok((sorted.astype(DType::Bool)?, order))
    } else {
        Ok(row.sort())
    }
}

/// The value of each run.
fn values(runs: &Runs, fill_value: Option<f64>) -> Result<Tensor> {
    let (n, size) = (runs.sorted.numel(), runs.bounds.numel() - 1);
    match fill_value {
        Some(value) => expect_number(runs.sorted.dtype(), "fill_value", value)?,
        None if n == 0 && size > 0 => {
            return Err(Error::value(format!(
                "'x' has no elements, so there is no smallest one to fill size = {size}; pass 'fill_value'"
            )));
        }
        None => {}
    }
    firsts(&runs.sorted, &runs.bounds, fill_value)
}

/// The elements of `x` at the start of each run. Those of missing runs are `fill`, or the first element.
#[op_fn]
fn firsts(x: &Tensor, bounds: &Tensor, fill: Option<f64>) -> Result<Tensor> {
    let filled = match fill {
        Some(fill) => x.pad([0, 1], fill)?,
        None => ops::concat([x, &x[..1]])?,
    };
    Ok(filled.gather(&bounds[..-1]))
}

/// The number of its run for each element of `x`.
#[op_fn]
fn inverse_indices(x: &Tensor, order: &Tensor, is_first: &Tensor) -> Result<Tensor> {
    let runs = is_first.cumsum() - 1;
    let inverse = runs.scatter(order, x.numel())?;
    Ok(inverse.reshape(x.shape().iter().map(|n| *n as i64).collect::<Vec<_>>()))
}

/// The length of each run.
#[op_fn]
fn counts(bounds: &Tensor) -> Result<Tensor> {
    Ok(&bounds[1..] - &bounds[..-1])
}
