//! Random ops.

use minitensor::prelude::*;

use crate::comparison::greater_equal;

/// Uniform random numbers in `[0, 1)`, with the shape and dtype of `x`.
#[custom_op(backward = |d| { x: zeros_like(d) })]
pub fn rand_like(x: &Tensor) -> Result<Tensor> {
    minitensor::random::uniform(x.shape().clone(), x.dtype(), x.device())
}

/// Sets each element to 0 with probability `p` and scales the others by `1/(1 − p)` (Srivastava et al., 2014). Returns
/// `x` unchanged if `training` is false.
#[custom_op(where p >= 0.0, p <= 1.0)]
pub fn dropout(x: &Tensor, #[default = 0.5] p: f64, #[default = true] training: bool) -> Result<Tensor> {
    if !training || p == 0.0 {
        return Ok(x.clone());
    }
    // Random numbers in a half format are too coarse for a probability.
    let dtype = x.dtype().compute();
    let drawn = minitensor::random::uniform(x.shape().clone(), dtype, x.device())?;
    let scale = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
    let kept = greater_equal::call(&drawn, &Tensor::from_const(p.into(), dtype, x.device())?)?;
    scale_where::call(x, &kept, scale)
}

/// `x · scale` where `kept` is true, else 0.
#[custom_op(name = "random::scale_where")]
pub fn scale_where<T: Float>(x: T, kept: T::Mask, scale: f64) -> T {
    if kept { x * scale } else { 0.0 }
}
