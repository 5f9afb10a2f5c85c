//! Elementwise exponentials, logarithms and roots.

use minitensor::prelude::*;

/// `eˣ`.
#[custom_op(inplace)]
pub fn exp<T: Field>(x: T) -> T {
    x.exp()
}

/// `2ˣ`.
#[custom_op(inplace)]
pub fn exp2<T: Float>(x: T) -> T {
    x.exp2()
}

/// `eˣ − 1`, accurate for small `x`.
#[custom_op(inplace)]
pub fn expm1<T: Field>(x: T) -> T {
    x.expm1()
}

/// The natural logarithm; NaN below 0.
#[custom_op(inplace)]
pub fn log<T: Field>(x: T) -> T {
    x.log()
}

/// `ln(1 + x)`, accurate for small `x`.
#[custom_op(inplace)]
pub fn log1p<T: Field>(x: T) -> T {
    x.log1p()
}

/// The logarithm to the base 2.
#[custom_op(inplace)]
pub fn log2<T: Field>(x: T) -> T {
    x.log2()
}

/// The logarithm to the base 10.
#[custom_op(inplace)]
pub fn log10<T: Field>(x: T) -> T {
    x.log10()
}

/// `√x`; NaN below 0.
#[custom_op(inplace)]
pub fn sqrt<T: Field>(x: T) -> T {
    x.sqrt()
}

/// `1 / √x`.
#[custom_op(inplace)]
pub fn rsqrt<T: Float>(x: T) -> T {
    x.rsqrt()
}

/// The real cube root.
#[custom_op(inplace)]
pub fn cbrt<T: Float>(x: T) -> T {
    x.cbrt()
}

/// `ln(eˣ + eʸ)`, without intermediate overflow.
#[custom_op(symmetric, precompiled)]
pub fn logaddexp<T: Float>(x: T, y: T) -> T {
    x.logaddexp(y)
}
