//! Signal processing.

use std::f64::consts::{PI, TAU};

use minitensor_plugin_sdk::kernels::lit;
use minitensor_plugin_sdk::prelude::*;

/// The first-order high-pass `xᵢ − coefficient·xᵢ₋₁` before a spectrum of speech is taken.
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = -1)]
pub fn pre_emphasis<R: Row>(x: R, #[default = 0.97] coefficient: f64) -> R {
    x - coefficient * x.shift(1)
}

/// A second-order filter in transposed direct form II, `a0 = 1` (Oppenheim and Schafer, 1975).
#[custom_op(shape = (x: [.., n], b: [3], a: [2]) -> [.., n])]
pub fn biquad<T: Float>(x: &[T], b: &[T], a: &[T], out: &mut [T]) {
    let (mut s1, mut s2) = (T::zero(), T::zero());
    for (y, x) in out.iter_mut().zip(x) {
        *y = b[0] * *x + s1;
        s1 = b[1] * *x - a[0] * *y + s2;
        s2 = b[2] * *x - a[1] * *y;
    }
}

/// The power of a row at `frequency` cycles for each sample, as the Goertzel algorithm computes it (Goertzel, 1958).
#[custom_op(shape = (x: [.., n], frequency: [..]) -> [..])]
pub fn goertzel<R: Row>(x: R, frequency: R) -> R {
    let angle = TAU * frequency * x.position();
    x.dot(angle.cos()).square() + x.dot(angle.sin()).square()
}

/// A row under the Hann window `sin²(π·i / n)` (Blackman and Tukey, 1958).
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = -1)]
pub fn hann<R: Row>(x: R) -> R {
    x * (PI * x.position() / x.count()).sin().square()
}

/// The discrete cosine transform of blocks of eight (Ahmed, Natarajan and Rao, 1974), as in JPEG.
#[custom_op(shape = (x: [.., 8]) -> [.., 8])]
pub fn dct8<T: Float>(x: &[T], out: &mut [T]) {
    for (k, y) in out.iter_mut().enumerate() {
        let wave = |i: usize| lit::<T>((PI * (i as f64 + 0.5) * k as f64 / 8.0).cos());
        *y = x.iter().enumerate().fold(T::zero(), |total, (i, x)| total + *x * wave(i));
    }
}

/// The correlation of a row with itself, `lag` samples later.
#[custom_op(shape = (x: [.., n]) -> [..] where n > 0, axis = -1)]
pub fn autocorrelation<R: Row>(x: R, #[default = 1] lag: i64) -> R {
    let x = x - x.mean();
    x.dot(x.shift(lag)) / x.dot(x)
}

/// The energy `xᵢ² − xᵢ₋₁·xᵢ₊₁` of an oscillation (Kaiser, 1990).
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = -1)]
pub fn teager_energy<R: Row>(x: R) -> R {
    x.square() - x.shift(1) * x.shift(-1)
}

/// The means and differences of pairs: one level of the Haar transform (Haar, 1910).
#[custom_op(shape = (x: [.., n]) -> (low: [.., n / 2], high: [.., n / 2]))]
pub fn haar<T: Float>(x: &[T], low: &mut [T], high: &mut [T]) {
    for (i, pair) in x.chunks_exact(2).enumerate() {
        low[i] = (pair[0] + pair[1]) * std::f64::consts::FRAC_1_SQRT_2;
        high[i] = (pair[0] - pair[1]) * std::f64::consts::FRAC_1_SQRT_2;
    }
}
