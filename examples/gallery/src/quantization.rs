//! Numbers with few bits.

use minitensor_plugin_sdk::prelude::*;

/// `x` as it is after quantization to steps from `low` to `high` (Jacob et al., 2018). The gradient is the straight-through
/// estimate: that of `x`, where it is not clipped (Bengio, Léonard and Courville, 2013).
#[custom_op(
    where scale > 0.0, low < high,
    backward = |d| { x: if x < scale * low || x > scale * high { 0 * d } else { d } },
)]
pub fn fake_quantize<T: Float>(
    x: T,
    #[default = 0.1] scale: f64,
    #[default = -128.0] low: f64,
    #[default = 127.0] high: f64,
) -> T {
    (x / scale).round().clip(low, high) * scale
}

/// Rows as eight bits and one scale for each row, the largest magnitude over 127 (Dettmers et al., 2022).
#[custom_op(shape = (x: [.., n]) -> (steps: [.., n], scale: [..]) where eps > 0.0, dtype = (x: R) -> (steps: i8, scale: R))]
pub fn quantize_rows<R: Row>(x: R, #[default = 1e-12] eps: f64) -> (R, R) {
    let scale = x.abs().max().maximum(eps) / 127;
    ((x / scale).round(), scale)
}

/// The rows that [`quantize_rows()`] stored.
#[custom_op(shape = (steps: [.., n], scale: [..]) -> [.., n], dtype = (steps: i8, scale: R) -> R)]
pub fn dequantize_rows<R: Row>(steps: R, scale: R) -> R {
    steps * scale
}

/// The nearest power of two in the logarithm, with the sign of `x` (Miyashita, Lee and Murmann, 2016).
#[custom_op]
pub fn log_quantize<T: Float>(x: T) -> T {
    if x == 0.0 { 0.0 } else { x.abs().log2().round().exp2().copysign(x) }
}

/// Weights −a, 0 and a, with the threshold and scale that approximate the row best (Li, Zhang and Liu, 2016).
#[custom_op(shape = (x: [.., n]) -> [.., n] where n > 0)]
pub fn ternarize<R: Row>(x: R) -> R {
    let size = x.abs();
    let kept = if size > 0.7 * size.mean() { 1.0 } else { 0.0 };
    let scale = (size * kept).sum() / kept.sum().maximum(1);
    scale * kept * x.sign()
}

/// The compression `sign(x) · ln(1 + mu·|x|) / ln(1 + mu)` of telephony (ITU-T G.711, 1972).
#[custom_op(where mu > 0.0)]
pub fn mu_law<T: Float>(x: T, #[default = 255.0] mu: f64) -> T {
    ((mu * x.abs()).log1p() / mu.ln_1p()).copysign(x)
}
