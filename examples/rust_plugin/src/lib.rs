//! A plugin with some ops, which prints a message when it is loaded and unloaded.

use minitensor_plugin_sdk::prelude::*;
use minitensor_plugin_sdk::{BackwardCall, CustomOpRegistry, Plugin, PluginInfo, VersionInfo};

/// The absolute value.
#[custom_op]
pub fn rust_abs<T: Real>(x: T) -> T {
    x.abs()
}

/// `x`, clamped to `[low, high]`. Outside of this range, the gradient flows to the limit. NaN propagates.
#[custom_op]
pub fn rust_clamp<T: Real>(x: T, low: T, high: T) -> T {
    x.maximum(low).minimum(high)
}

/// The Gaussian error linear unit, `x · Φ(x)` (Hendrycks and Gimpel, 2016).
#[custom_op]
pub fn rust_gelu<T: Float>(x: T) -> T {
    x * x.normal_cdf()
}

/// `x` with noise that grows along the last axis, up to `width`.
#[custom_op]
pub fn rust_noise<T: Float>(x: T, #[position(-1)] at: T, #[uniform] u: T, #[default = 1.0] width: f64) -> T {
    x + width * u * at / (1.0 + at)
}

/// The response of a damped oscillator to a force of frequency `omega`, and its size.
#[custom_op(dtype = (force: Complex<T>, omega: T) -> (response: Complex<T>, size: T))]
pub fn rust_resonance<T: Float>(force: Complex<T>, omega: T, #[default = 0.1] damping: f64) -> (Complex<T>, T) {
    let response = force / (1.0 - omega * omega + Complex::i() * damping * omega);
    (response, response.abs())
}

/// A spectrum with power 1, and its power before that.
#[custom_op(shape = (z: [.., n]) -> (spectrum: [.., n], power: [..]), axis = -1)]
pub fn rust_spectrum<R: Row>(z: Complex<R>) -> (Complex<R>, R) {
    let power = z.norm_sqr().sum();
    (z / power.sqrt(), power)
}

/// `√(x² + y²)`. The gradient follows from the tangents.
#[custom_op(jvp = |dx, dy| { out: (x * dx + y * dy) / out })]
pub fn rust_hypotenuse<T: Float>(x: T, y: T) -> T {
    (x * x + y * y).sqrt()
}

/// The squares of any number of tensors. A formula cannot index a list, so the tangents are a function.
#[custom_op(jvp = squares_jvp)]
pub fn rust_squares(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
    tensors.iter().map(|x: &&Tensor| Ok(x.square())).collect()
}

fn squares_jvp(call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
    (0..call.num_inputs()).map(|i| doubled_product(&call.input(i)?, &call.tangent(i)?).map(Some)).collect()
}

#[op_fn]
fn doubled_product(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    Ok(2.0 * x * y)
}

/// The transpose of a matrix, tile by tile. The fastest tile is measured.
#[custom_op(
    shape = (x: [.., m, n]) -> [.., n, m],
    backward = |d_out| { x: rust_transpose(d_out) },
    tune = [tile = [8, 32, 128]],
)]
pub fn rust_transpose<T: Num>(x: ArrayView2<T>, mut out: ArrayViewMut2<T>, tile: usize) {
    let (m, n) = x.dim();
    for top in (0..m).step_by(tile) {
        for left in (0..n).step_by(tile) {
            for i in top..m.min(top + tile) {
                for j in left..n.min(left + tile) {
                    out[[j, i]] = x[[i, j]];
                }
            }
        }
    }
}

fn softmin<T: Float>(a: T, b: T, c: T) -> T {
    let least = a.minimum(b).minimum(c);
    least - ((least - a).exp() + (least - b).exp() + (least - c).exp()).log()
}

/// The soft-DTW distance of two sequences, from the distances of their elements (Cuturi and Blondel, 2017). Its gradient is derived.
#[custom_op(shape = (d: [.., m, n]) -> [..] where m > 0, n > 0)]
pub fn rust_soft_dtw<T: Float>(d: ArrayView2<T>) -> T {
    let far: T = 1e4;
    let (m, n) = d.dim();
    let mut row = vec![far; n + 1];
    row[0] = 0.0;
    for i in 0..m {
        let mut diagonal = row[0];
        row[0] = far;
        for j in 0..n {
            let up = row[j + 1];
            row[j + 1] = d[[i, j]] + softmin(up, row[j], diagonal);
            diagonal = up;
        }
    }
    row[n]
}

/// Attention, `softmax(query · keyᵀ) · value` along the last two axes, by calls of other ops.
#[custom_op]
pub fn rust_attention(query: &Tensor, key: &Tensor, value: &Tensor) -> Result<Tensor> {
    let scores = query.matmul(key.rust_transpose());
    Ok(scores.softmax(axis = -1).matmul(value))
}

/// Only needed for `initialize` and `cleanup`: `plugin! {}` alone exports all ops of the crate.
struct Example {
    info: PluginInfo,
}

impl Example {
    fn new() -> Example {
        let info = PluginInfo {
            name: "rust_example_plugin".to_string(),
            version: VersionInfo::new(1, 0, 0),
            description: "Example Rust plugin".to_string(),
            author: "Rust Developer".to_string(),
            min_minitensor_version: VersionInfo::new(0, 1, 0),
            max_minitensor_version: None,
        };
        Example { info }
    }
}

impl Plugin for Example {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn initialize(&self, _registry: &CustomOpRegistry) -> Result<()> {
        println!("Rust plugin initialized!");
        Ok(())
    }

    fn cleanup(&self, _registry: &CustomOpRegistry) -> Result<()> {
        println!("Rust plugin cleaned up!");
        Ok(())
    }
}

plugin! {
    name: "rust_example_plugin",
    description: "Example Rust plugin",
    author: "Rust Developer",
    min_minitensor: "0.1.0",
    plugin: Example::new(),
}
