//! Other shapes of the same elements, as views wherever the layout allows.

use minitensor::prelude::*;

/// The same elements in another shape; `-1`, once, is whatever is left.
#[custom_op(alias = "view", backward = |d| { x: d.reshape(x.shape) })]
pub fn reshape(x: &Tensor, shape: &[i64]) -> Result<Tensor> {
    x.reshape_view(shape)
}

/// The axes in another order.
#[custom_op(alias = "permute", backward = |d| { x: d.permute_dims(self::inverse(axes)) })]
pub fn permute_dims(x: &Tensor, axes: &[i64]) -> Result<Tensor> {
    x.permute_view(axes)
}

/// The order of axes that undoes another.
fn inverse(axes: &[i64]) -> Vec<i64> {
    let rank = axes.len() as i64;
    let mut inverse = vec![0; axes.len()];
    for (to, from) in axes.iter().enumerate() {
        inverse[from.rem_euclid(rank) as usize] = to as i64;
    }
    inverse
}

/// Two axes changed for each other.
#[custom_op(alias = "swapaxes")]
pub fn transpose(x: &Tensor, #[default = -2] axis0: i64, #[default = -1] axis1: i64) -> Result<Tensor> {
    let rank = x.ndim();
    let (a, b) = (minitensor::tensor::normalize_axis(axis0, rank)?, minitensor::tensor::normalize_axis(axis1, rank)?);
    let mut axes: Vec<i64> = (0..rank as i64).collect();
    axes.swap(a, b);
    permute_dims::call(x, &axes)
}

/// The last two axes changed for each other.
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

/// An axis at another place, the others in their order.
#[custom_op]
pub fn moveaxis(x: &Tensor, source: i64, destination: i64) -> Result<Tensor> {
    let from = minitensor::tensor::normalize_axis(source, x.ndim())?;
    let to = minitensor::tensor::normalize_axis(destination, x.ndim())?;
    let mut axes: Vec<i64> = (0..x.ndim() as i64).filter(|a| *a != from as i64).collect();
    axes.insert(to, from as i64);
    permute_dims::call(x, &axes)
}

/// Stretched to a larger shape without a copy: sizes are aligned at the end, 1 stretches, `-1` keeps a size.
#[custom_op(alias = "broadcast_to", backward = |d| { x: d })]
pub fn expand(x: &Tensor, shape: &[i64]) -> Result<Tensor> {
    x.expand_view(shape)
}

/// Without an axis of size 1; without all of them if none is named.
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

/// With a new axis of size 1.
#[custom_op(alias = "expand_dims", backward = |d| { x: d.reshape(x.shape) })]
pub fn unsqueeze(x: &Tensor, #[default = 0] axis: i64) -> Result<Tensor> {
    x.unsqueeze_view(axis)
}

/// The axes from `start` to `end` as one.
#[custom_op]
pub fn flatten(x: &Tensor, #[default = 0] start: i64, #[default = -1] end: i64) -> Result<Tensor> {
    if x.ndim() == 0 {
        return reshape::call(x, &[1]);
    }
    let (a, b) =
        (minitensor::tensor::normalize_axis(start, x.ndim())?, minitensor::tensor::normalize_axis(end, x.ndim())?);
    if a > b {
        return Err(Error::value(format!("axis {start} stands behind axis {end}")));
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

/// An axis, or several, or all, in reverse.
#[custom_op]
pub fn flip(x: &Tensor, axis: Option<&[i64]>) -> Result<Tensor> {
    let all: Vec<i64> = (0..x.ndim() as i64).collect();
    axis.unwrap_or(&all).iter().try_fold(x.clone(), |x, axis| crate::indexing::slice::call(&x, *axis, None, None, -1))
}

/// Rolled along an axis: what leaves at one end comes in at the other.
#[custom_op]
pub fn roll(x: &Tensor, shift: i64, #[default = 0] axis: i64) -> Result<Tensor> {
    let at = minitensor::tensor::normalize_axis(axis, x.ndim())?;
    let size = x.shape()[at] as i64;
    if size == 0 {
        return Ok(x.clone());
    }
    let cut = (-shift).rem_euclid(size);
    let tail = crate::indexing::slice::call(x, axis, Some(cut), None, 1)?;
    let head = crate::indexing::slice::call(x, axis, None, Some(cut), 1)?;
    crate::joining::concat::call(&[&tail, &head], axis)
}
