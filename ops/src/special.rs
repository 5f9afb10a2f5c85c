//! Elementwise special functions.

use minitensor::prelude::*;

/// The error function, `2/√π ∫₀ˣ e^(−t²) dt`.
#[custom_op(precompiled)]
pub fn erf<T: Float>(x: T) -> T {
    x.erf()
}

/// `1 − erf(x)`, accurate for large `x`.
#[custom_op(precompiled)]
pub fn erfc<T: Float>(x: T) -> T {
    x.erfc()
}

/// `ln |Γ(x)|`.
#[custom_op(precompiled)]
pub fn lgamma<T: Float>(x: T) -> T {
    x.lgamma()
}

/// The derivative of `ln Γ(x)`.
#[custom_op(precompiled)]
pub fn digamma<T: Float>(x: T) -> T {
    x.digamma()
}
