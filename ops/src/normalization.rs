//! Softmax and normalization along an axis.

use minitensor::prelude::*;

use crate::shape::reshape;

/// `eˣ / Σ eˣ` along an axis, without overflow.
// The derived gradient would compute the exponentials again; this one uses only the result, which is available anyway.
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = -1, backward = |d| { x: row::softmax_vjp(d, out) }, precompiled)]
pub fn softmax<R: Row>(x: R) -> R {
    let e = (x - x.max()).exp();
    e * e.sum().recip()
}

/// The gradient of [`softmax()`], from its result `y`: `y (d − Σ d y)`.
#[custom_op(name = "row::softmax_vjp", shape = (d: [.., n], y: [.., n]) -> [.., n], precompiled)]
pub fn softmax_vjp<R: Row>(d: R, y: R) -> R {
    y * (d - d.dot(y))
}

/// `x − ln Σ eˣ` along an axis: the logarithm of [`softmax()`], accurate even if that is tiny.
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = -1, backward = |d| { x: row::log_softmax_vjp(d, out) }, precompiled)]
pub fn log_softmax<R: Row>(x: R) -> R {
    x - x.logsumexp()
}

/// The gradient of [`log_softmax()`], from its result `y`: `d − eʸ Σ d`.
#[custom_op(name = "row::log_softmax_vjp", shape = (d: [.., n], y: [.., n]) -> [.., n], precompiled)]
pub fn log_softmax_vjp<R: Row>(d: R, y: R) -> R {
    d - y.exp() * d.sum()
}

/// `(x − mean) / √(var + eps)` along an axis, several, or all.
#[custom_op(shape = (x: [.., n]) -> [.., n] where eps >= 0.0, axis = None, precompiled)]
pub fn standardize<R: Row>(x: R, #[default = 1e-5] eps: f64) -> R {
    let c = x - x.mean();
    c * (c.square().mean() + eps).rsqrt()
}

/// Layer normalization over the last axis: `(x − mean) / √(var + eps) · weight + bias` (Ba et al., 2016).
#[custom_op(shape = (x: [.., n], weight: [n], bias: [n]) -> [.., n] where eps >= 0.0, precompiled)]
pub fn layer_norm<R: Row>(x: R, weight: Option<R>, bias: Option<R>, #[default = 1e-5] eps: f64) -> R {
    let c = x - x.mean();
    let y = c * (c.square().mean() + eps).rsqrt();
    let y = if let Some(weight) = weight { y * weight } else { y };
    if let Some(bias) = bias { y + bias } else { y }
}

/// Root-mean-square normalization over the last axis: `x / √(mean(x²) + eps) · weight` (Zhang and Sennrich, 2019).
#[custom_op(shape = (x: [.., n], weight: [n]) -> [.., n] where eps >= 0.0, precompiled)]
pub fn rms_norm<R: Row>(x: R, weight: Option<R>, #[default = 1e-5] eps: f64) -> R {
    let y = x * (x.square().mean() + eps).rsqrt();
    if let Some(weight) = weight { y * weight } else { y }
}

/// `x · y / (max(‖x‖, eps) · max(‖y‖, eps))` along an axis.
#[custom_op(shape = (x: [.., n], y: [.., n]) -> [..] where eps >= 0.0, axis = -1, precompiled)]
pub fn cosine_similarity<R: Row>(x: R, y: R, #[default = 1e-8] eps: f64) -> R {
    let floor = eps * eps;
    x.dot(y) * x.square().sum().maximum(floor).rsqrt() * y.square().sum().maximum(floor).rsqrt()
}

/// Batch normalization of `x` (`[batch, channels, ..]`). Every channel is normalized over the batch and all positions,
/// or by `mean` and `var` (`[channels]`) if they are given. Then it is multiplied by `weight` and shifted by `bias`
/// (`[channels]`) (Ioffe and Szegedy, 2015).
#[custom_op(where eps >= 0.0)]
pub fn batch_norm(
    x: &Tensor,
    mean: Option<&Tensor>,
    var: Option<&Tensor>,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    #[default = 1e-5] eps: f64,
) -> Result<Tensor> {
    let channels = channels("batch_norm", x)?;
    let y = match (mean, var) {
        (None, None) => {
            let axes: Vec<i64> = (0..x.ndim() as i64).filter(|axis| *axis != 1).collect();
            standardize::call(x, Some(&axes), eps)?
        }
        (Some(mean), Some(var)) => {
            let var: Tensor = along(var, "var", channels, x)?;
            (x - along(mean, "mean", channels, x)?) / (var + eps).sqrt()
        }
        _ => return Err(Error::type_("op 'batch_norm': takes both 'mean' and 'var', or neither")),
    };
    affine(y, weight, bias, channels)
}

/// Instance normalization of `x` (`[batch, channels, ..]`). Every channel of every example is normalized over its
/// positions. Then it is multiplied by `weight` and shifted by `bias` (`[channels]`) (Ulyanov et al., 2016).
#[custom_op(where eps >= 0.0)]
pub fn instance_norm(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    #[default = 1e-5] eps: f64,
) -> Result<Tensor> {
    let channels = channels("instance_norm", x)?;
    if x.ndim() < 3 {
        return Err(Error::value(format!(
            "op 'instance_norm' takes x: [batch, channels, ..] with elements to normalize, got shape {}",
            x.shape()
        )));
    }
    let axes: Vec<i64> = (2..x.ndim() as i64).collect();
    affine(standardize::call(x, Some(&axes), eps)?, weight, bias, channels)
}

/// Group normalization of `x` (`[batch, channels, ..]`). The channels are split into `groups` groups, each of which is
/// normalized for every example. Then every channel is multiplied by `weight` and shifted by `bias` (`[channels]`) (Wu
/// and He, 2018).
#[custom_op(where eps >= 0.0)]
pub fn group_norm(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    #[default = 1] groups: usize,
    #[default = 1e-5] eps: f64,
) -> Result<Tensor> {
    let channels = channels("group_norm", x)?;
    if groups == 0 || channels % groups != 0 {
        return Err(Error::value(format!(
            "op 'group_norm': groups = {groups} must divide the number of channels, {channels}"
        )));
    }
    let split: Vec<i64> =
        [x.shape()[0] as i64, groups as i64, (x.numel() / (x.shape()[0] * groups).max(1)) as i64].into();
    let whole: Vec<i64> = x.shape().iter().map(|s| *s as i64).collect();
    let y = standardize::call(&reshape::call(x, &split)?, Some(&[-1]), eps)?;
    affine(reshape::call(&y, &whole)?, weight, bias, channels)
}

/// The size of the second axis.
fn channels(op: &str, x: &Tensor) -> Result<usize> {
    x.shape()
        .get(1)
        .copied()
        .ok_or_else(|| Error::value(format!("op '{op}' takes x: [batch, channels, ..], got shape {}", x.shape())))
}

/// Reshapes one number per channel so that it broadcasts with `x`.
fn along(numbers: &Tensor, name: &str, channels: usize, x: &Tensor) -> Result<Tensor> {
    if numbers.shape().as_ref() != [channels] {
        return Err(Error::value(format!(
            "'{name}' takes one number for each of the {channels} channels, got shape {}",
            numbers.shape()
        )));
    }
    let mut sizes = vec![1i64; x.ndim()];
    sizes[1] = channels as i64;
    reshape::call(numbers, &sizes)
}

#[op_fn]
fn affine(y: Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>, channels: usize) -> Result<Tensor> {
    let y = match weight {
        Some(weight) => y * along(weight, "weight", channels, &y)?,
        None => y,
    };
    Ok(match bias {
        Some(bias) => y + along(bias, "bias", channels, &y)?,
        None => y,
    })
}
