//! Ops for minitensor. Each op is defined once; its checks, gradient and Python function are derived from the definition.

use minitensor_plugin_sdk::prelude::*;

/// A smooth `max(x, 0)`: `(x + √(x² + b)) / 2`.
#[custom_op(name = "my_ops::squareplus", where b >= 0.0)]
pub fn squareplus<T: Float>(x: T, #[default = 4.0] b: f64) -> T {
    // An element op: it runs over all elements of a tensor of any shape. The gradient is derived.
    0.5 * (x + (x * x + b).sqrt())
}

/// The softmax of each row, with a temperature.
#[custom_op(name = "my_ops::tempered_softmax", shape = (x: [.., n]) -> [.., n] where temperature > 0.0)]
pub fn tempered_softmax<R: Row>(x: R, #[default = 1.0] temperature: f64) -> R {
    // A row op along the last axis: `max` and `sum` reduce the row. The gradient is derived.
    let z = x / temperature;
    let e = (z - z.max().detach()).exp();
    e / e.sum()
}

/// `−temperature · log Σ exp(−x / temperature)` of each row, a smooth minimum.
#[custom_op(name = "my_ops::free_energy", shape = (x: [.., n]) -> [..] where temperature > 0.0)]
pub fn free_energy<R: Row>(x: R, #[default = 1.0] temperature: f64) -> R {
    -temperature * (-x / temperature).logsumexp()
}

/// Each row divided by `1 + strength · mean(x²)`.
#[custom_op(name = "my_ops::damped", shape = (x: [.., n], strength: [..]) -> [.., n])]
pub fn damped<R: Row>(x: R, strength: R) -> R {
    // `strength` has one value per row.
    x / (1.0 + strength * x.square().mean())
}

/// Scales each row to a mean square of 1, then multiplies each column by its weight.
#[custom_op(name = "my_ops::rms_norm", shape = (x: [.., n], weight: [n]) -> [.., n] where eps > 0.0)]
pub fn rms_norm<R: Row>(x: R, weight: R, #[default = 1e-6] eps: f64) -> R {
    // All rows share `weight`, so its gradient is summed over the rows.
    x * (x.square().mean() + eps).rsqrt() * weight
}

/// An exponential moving average along the last axis: `outᵢ = decay · outᵢ₋₁ + (1 − decay) · xᵢ`.
#[custom_op(
    name = "my_ops::moving_average",
    shape = (x: [.., n]) -> [.., n],
    backward = |d| { x: flip(my_ops::moving_average(flip(d, -1), decay), -1) },
)]
pub fn moving_average<T: Float>(x: &[T], #[default = 0.9] decay: f64, out: &mut [T]) {
    // A cell op: plain Rust over slices. The formula above is the gradient, composed of ops.
    let mut average: T = 0.0;
    for (out, x) in out.iter_mut().zip(x) {
        average = decay * average + (1.0 - decay) * *x;
        *out = average;
    }
}

plugin! {}

#[cfg(test)]
mod tests;
