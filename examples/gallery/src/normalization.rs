//! Normalization of rows.

use minitensor_plugin_sdk::prelude::*;

/// Each row, divided by its Euclidean length.
#[custom_op(shape = (x: [.., n]) -> [.., n] where eps > 0.0, axis = -1)]
pub fn l2_normalize<R: Row>(x: R, #[default = 1e-12] eps: f64) -> R {
    x * x.dot(x).maximum(eps).rsqrt()
}

/// The root mean square norm after centering, which equals layer normalization without a bias (Jiang et al., 2023).
#[custom_op(shape = (x: [.., n], weight: [n]) -> [.., n] where eps > 0.0)]
pub fn centered_rms_norm<R: Row>(x: R, weight: Option<R>, #[default = 1e-5] eps: f64) -> R {
    let x = x - x.mean();
    let y = x * (x.square().mean() + eps).rsqrt();
    if let Some(weight) = weight { y * weight } else { y }
}

/// Each row at the length `scale`, one learned number (Nguyen and Salazar, 2019).
#[custom_op(shape = (x: [.., n], scale: [..]) -> [.., n] where eps > 0.0)]
pub fn scale_norm<R: Row>(x: R, scale: R, #[default = 1e-5] eps: f64) -> R {
    scale * x / (x.dot(x).sqrt()).maximum(eps)
}

/// Normalization without statistics: `weight · tanh(alpha · x) + bias` (Zhu et al., 2025).
#[custom_op]
pub fn dynamic_tanh<T: Float>(x: T, alpha: T, weight: T, bias: T) -> T {
    weight * (alpha * x).tanh() + bias
}

/// Each row, scaled to the range [0, 1].
#[custom_op(shape = (x: [.., n]) -> [.., n] where eps > 0.0, axis = -1)]
pub fn min_max_scale<R: Row>(x: R, #[default = 1e-12] eps: f64) -> R {
    (x - x.min()) / (x.max() - x.min()).maximum(eps)
}

/// Signed powers, then unit length: the normalization of Fisher vectors (Perronnin, Sánchez and Mensink, 2010).
#[custom_op(shape = (x: [.., n]) -> [.., n] where eps > 0.0)]
pub fn power_norm<R: Row>(x: R, #[default = 1e-6] eps: f64) -> R {
    let y = x / (x.abs() + eps).sqrt();
    y * (y.square().sum() + eps).rsqrt()
}
