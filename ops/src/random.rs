//! Random ops.
//!
//! The ops of the namespace `random` are functions of a key: a tensor of two `uint64`, the seed and a counter. The others call
//! them with the next key of the global generator.

use minitensor::prelude::*;
use minitensor::random::{self, Block, next_key};

/// The next key of the global generator, for `count` uniform or normal random numbers on the device of `x`.
#[custom_op(name = "random::key", dtype = (x: T) -> u64 where T: Element, where count >= 0, backward = none)]
pub fn key(x: &Tensor, count: i64) -> Result<Tensor> {
    next_key(count as usize, Block::Floats, x.device())
}

/// The key after `count` uniform or normal random numbers of `key`.
#[custom_op(
    name = "random::skip", shape = (key: [2]) -> [2] where count >= 0, dtype = (key: u64) -> u64, backward = none,
)]
pub fn skip(key: &Tensor, count: i64) -> Result<Tensor> {
    let blocks = Tensor::from_vec(vec![0, (count as u64).div_ceil(2)], [2])?.to_device(key.device())?;
    Ok(key + blocks)
}

/// Uniform random numbers in `[0, 1)`: a function of the key.
#[custom_op(
    name = "random::uniform", dtype = (key: u64) -> dtype, backward = none,
)]
pub fn uniform(key: &Tensor, shape: &[i64], #[default = DType::F32] dtype: DType) -> Result<Tensor> {
    random::uniform(key, Shape::from_sizes(shape)?, dtype)
}

/// Random numbers of the standard normal distribution: a function of the key.
#[custom_op(name = "random::normal", dtype = (key: u64) -> dtype, backward = none)]
pub fn normal(key: &Tensor, shape: &[i64], #[default = DType::F32] dtype: DType) -> Result<Tensor> {
    random::normal(key, Shape::from_sizes(shape)?, dtype)
}

/// Uniform random integers from `low` to `high`, excluding `high`: a function of the key.
#[custom_op(name = "random::integers", dtype = (key: u64) -> i64, backward = none)]
pub fn integers(key: &Tensor, low: i64, high: i64, shape: &[i64]) -> Result<Tensor> {
    random::integers(key, low, high, Shape::from_sizes(shape)?)
}

/// Uniform random numbers in `[0, 1)`, with the shape and dtype of `x`.
#[custom_op(backward = |d| { x: zeros_like(d) })]
pub fn rand_like(x: &Tensor) -> Result<Tensor> {
    uniform::call(&next_key(x.numel(), Block::Floats, x.device())?, &sizes(x), x.dtype())
}

/// Sets each element to 0 with probability `p` and scales the others by `1/(1 − p)` (Srivastava et al., 2014). Returns
/// `x` unchanged if `training` is false.
#[custom_op(dtype = (x: T) -> T where T: Float, where p >= 0.0, p <= 1.0)]
pub fn dropout(x: &Tensor, #[default = 0.5] p: f64, #[default = true] training: bool) -> Result<Tensor> {
    if !training || p == 0.0 {
        return Ok(x.clone());
    }
    keyed_dropout::call(x, &next_key(x.numel(), Block::Floats, x.device())?, p)
}

/// [`dropout()`] as a function of a key.
#[custom_op(name = "random::dropout", where p >= 0.0, p <= 1.0)]
pub fn keyed_dropout(x: &Tensor, key: &Tensor, #[default = 0.5] p: f64) -> Result<Tensor> {
    // Random numbers in a half format are too coarse for a probability.
    let dtype = x.dtype().compute();
    let kept = ops::random::uniform(key, x.shape(), dtype) >= p;
    let scale = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
    Ok(ops::random::scale_where(x, kept, scale))
}

fn sizes(x: &Tensor) -> Vec<i64> {
    x.shape().iter().map(|size| *size as i64).collect()
}

/// `x · scale` where `kept` is true, else 0.
#[custom_op(name = "random::scale_where", precompiled)]
pub fn scale_where<T: Float>(x: T, kept: T::Mask, scale: f64) -> T {
    if kept { x * scale } else { 0.0 }
}
