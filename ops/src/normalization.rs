//! Softmax and normalization along an axis.

use minitensor::kernels::rows;
use minitensor::prelude::*;

/// `eˣ / Σ eˣ` along an axis, without overflow.
#[custom_op(
    shape = (x: [.., n]) -> [.., n], axis = -1,
    backward = |d| {
        let s = d * out;
        x: s - out * sum(s, -1, true),
    },
)]
pub fn softmax<T: Float>(x: &[T], out: &mut [T]) {
    let Some(top) = rows::max(x) else { return };
    for (o, v) in out.iter_mut().zip(x) {
        *o = (*v - top).exp();
    }
    let scale = rows::sum(out).recip();
    for o in out {
        *o *= scale;
    }
}

/// `x − ln Σ eˣ` along an axis: the logarithm of [`softmax()`], exact where that is tiny.
#[custom_op(
    shape = (x: [.., n]) -> [.., n], axis = -1,
    backward = |d| { x: d - out.exp() * sum(d, -1, true) },
)]
pub fn log_softmax<T: Float>(x: &[T], out: &mut [T]) {
    let total = crate::reduction::row_logsumexp(x);
    for (o, v) in out.iter_mut().zip(x) {
        *o = *v - total;
    }
}

/// Layer normalization over the last axis: `(x − mean) / √(var + eps) · weight + bias` (Ba et al., 2016).
#[custom_op(
    shape = (x: [.., n], weight: [n], bias: [n]) -> [.., n] where eps >= 0.0,
    backward = |d| {
        let c = x - mean(x, -1, true);
        let r = (mean(c.square(), -1, true) + eps).rsqrt();
        let h = c * r;
        let g = d * weight;
        x: (g - mean(g, -1, true) - h * mean(g * h, -1, true)) * r,
        weight: d * h,
        bias: d,
    },
)]
pub fn layer_norm<T: Float>(x: &[T], weight: &[T], bias: &[T], #[default = 1e-5] eps: f64, out: &mut [T]) {
    let n = minitensor::kernels::lit::<T>(x.len());
    let mean = rows::sum(x) / n;
    let variance = rows::sum_map(x, |v| (v - mean).square()) / n;
    let scale = (variance + minitensor::kernels::lit(eps)).rsqrt();
    for (((o, v), w), b) in out.iter_mut().zip(x).zip(weight).zip(bias) {
        *o = (*v - mean) * scale * *w + *b;
    }
}

/// Root-mean-square normalization over the last axis: `x / √(mean(x²) + eps) · weight` (Zhang and Sennrich, 2019).
#[custom_op(
    shape = (x: [.., n], weight: [n]) -> [.., n] where eps >= 0.0,
    backward = |d| {
        let r = (mean(x.square(), -1, true) + eps).rsqrt();
        let h = x * r;
        let g = d * weight;
        x: (g - h * mean(g * h, -1, true)) * r,
        weight: d * h,
    },
)]
pub fn rms_norm<T: Float>(x: &[T], weight: &[T], #[default = 1e-5] eps: f64, out: &mut [T]) {
    let n = minitensor::kernels::lit::<T>(x.len());
    let scale = (rows::sum_map(x, |v| v.square()) / n + minitensor::kernels::lit(eps)).rsqrt();
    for ((o, v), w) in out.iter_mut().zip(x).zip(weight) {
        *o = *v * scale * *w;
    }
}
