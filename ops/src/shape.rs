//! Changes of shape, as views if the layout allows.

use minitensor::prelude::*;

/// The same elements in another shape. One size may be `-1`; it is inferred from the others.
#[custom_op(alias = "view", backward = |d| { x: d.reshape(x.shape) })]
pub fn reshape(x: &Tensor, shape: &[i64]) -> Result<Tensor> {
    x.reshape_view(shape)
}

/// Permutes the axes.
#[custom_op(alias = "permute", backward = |d| { x: d.permute_dims(self::inverse(axes)) })]
pub fn permute_dims(x: &Tensor, axes: &[i64]) -> Result<Tensor> {
    x.permute_view(axes)
}

/// The inverse of a permutation of axes.
fn inverse(axes: &[i64]) -> Vec<i64> {
    let rank = axes.len() as i64;
    let mut inverse = vec![0; axes.len()];
    for (to, from) in axes.iter().enumerate() {
        inverse[from.rem_euclid(rank) as usize] = to as i64;
    }
    inverse
}

/// Swaps two axes.
#[custom_op(alias = "swapaxes")]
pub fn transpose(x: &Tensor, #[default = -2] axis0: i64, #[default = -1] axis1: i64) -> Result<Tensor> {
    let rank = x.ndim();
    let (a, b) = (minitensor::tensor::normalize_axis(axis0, rank)?, minitensor::tensor::normalize_axis(axis1, rank)?);
    let mut axes: Vec<i64> = (0..rank as i64).collect();
    axes.swap(a, b);
    permute_dims::call(x, &axes)
}

/// Swaps the last two axes.
#[custom_op(alias = "mT")]
pub fn matrix_transpose(x: &Tensor) -> Result<Tensor> {
    if x.ndim() < 2 {
        return Err(Error::value(format!(
            "op 'matrix_transpose' takes tensors of at least 2 dimensions, got shape {}",
            x.shape()
        )));
    }
    transpose::call(x, -2, -1)
}

/// Moves an axis to another position; the other axes keep their order.
#[custom_op]
pub fn moveaxis(x: &Tensor, source: i64, destination: i64) -> Result<Tensor> {
    let from = minitensor::tensor::normalize_axis(source, x.ndim())?;
    let to = minitensor::tensor::normalize_axis(destination, x.ndim())?;
    let mut axes: Vec<i64> = (0..x.ndim() as i64).filter(|a| *a != from as i64).collect();
    axes.insert(to, from as i64);
    permute_dims::call(x, &axes)
}

/// Expands to a larger shape without a copy. Sizes are aligned at the end; a size of 1 expands, `-1` keeps a size.
#[custom_op(alias = "broadcast_to", backward = |d| { x: d })]
pub fn expand(x: &Tensor, shape: &[i64]) -> Result<Tensor> {
    x.expand_view(shape)
}

/// Removes axes of size 1: those that are named, or all of them.
#[custom_op(backward = |d| { x: d.reshape(x.shape) })]
pub fn squeeze(x: &Tensor, axis: Option<&[i64]>) -> Result<Tensor> {
    let rank = x.ndim();
    let mut axes = match axis {
        Some(axes) => axes.iter().map(|a| minitensor::tensor::normalize_axis(*a, rank)).collect::<Result<Vec<_>>>()?,
        None => (0..rank).filter(|d| x.shape()[*d] == 1).collect(),
    };
    axes.sort_unstable();
    axes.dedup();
    axes.iter().rev().try_fold(x.clone(), |x, axis| x.squeeze_view(*axis as i64))
}

/// Inserts a new axis of size 1.
#[custom_op(alias = "expand_dims", backward = |d| { x: d.reshape(x.shape) })]
pub fn unsqueeze(x: &Tensor, #[default = 0] axis: i64) -> Result<Tensor> {
    x.unsqueeze_view(axis)
}

/// Merges the axes from `start` to `end` into one.
#[custom_op]
pub fn flatten(x: &Tensor, #[default = 0] start: i64, #[default = -1] end: i64) -> Result<Tensor> {
    if x.ndim() == 0 {
        return reshape::call(x, &[1]);
    }
    let (a, b) =
        (minitensor::tensor::normalize_axis(start, x.ndim())?, minitensor::tensor::normalize_axis(end, x.ndim())?);
    if a > b {
        return Err(Error::value(format!("start = {start} is after end = {end}; give axes in ascending order")));
    }
    let size = |d: &usize| *d as i64;
    let shape: Vec<i64> = x.shape()[..a]
        .iter()
        .map(size)
        .chain([x.shape()[a..=b].iter().product::<usize>() as i64])
        .chain(x.shape()[b + 1..].iter().map(size))
        .collect();
    reshape::call(x, &shape)
}

/// Reverses the elements along one axis, several, or all.
#[custom_op]
pub fn flip(x: &Tensor, axis: Option<&[i64]>) -> Result<Tensor> {
    let all: Vec<i64> = (0..x.ndim() as i64).collect();
    axis.unwrap_or(&all).iter().try_fold(x.clone(), |x, axis| crate::indexing::slice::call(&x, *axis, None, None, -1))
}

/// Rotates the elements along an axis: elements that leave at one end reappear at the other.
#[custom_op]
pub fn roll(x: &Tensor, shift: i64, #[default = 0] axis: i64) -> Result<Tensor> {
    let at = minitensor::tensor::normalize_axis(axis, x.ndim())?;
    let size = x.shape()[at] as i64;
    if size == 0 {
        return Ok(x.clone());
    }
    let cut = (-shift).rem_euclid(size);
    Ok(ops::concat([x.slice(axis, start = cut), x.slice(axis, stop = cut)], axis))
}
