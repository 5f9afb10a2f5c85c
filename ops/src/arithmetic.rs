//! Elementwise arithmetic. Inputs broadcast and promote.

use minitensor::prelude::*;

/// `x + y`.
#[custom_op(linear = (x, y), symmetric, inplace)]
pub fn add<T: Num>(x: T, y: T) -> T {
    x + y
}

/// `x − y`.
#[custom_op(alias = "sub", linear = (x, y), inplace)]
pub fn subtract<T: Num>(x: T, y: T) -> T {
    x - y
}

/// `x · y`.
#[custom_op(alias = "mul", linear = [x, y], symmetric, inplace)]
pub fn multiply<T: Num>(x: T, y: T) -> T {
    x * y
}

/// `x / y`. Integers are divided in float32; `floor_divide` keeps them integers.
#[custom_op(alias = "div", linear = x, inplace)]
pub fn divide<T: Field>(x: T, y: T) -> T {
    x / y
}

/// `⌊x / y⌋`, Python's `//`. An integer divided by zero gives zero, as in NumPy.
#[custom_op(inplace)]
pub fn floor_divide<T: Real>(x: T, y: T) -> T {
    x.floor_divide(y)
}

/// `x − y·⌊x / y⌋`, Python's `%`: it has the sign of `y`. Modulo the integer zero it is zero, as in NumPy.
#[custom_op(inplace)]
pub fn remainder<T: Real>(x: T, y: T) -> T {
    x.remainder(y)
}

/// C's `fmod`: the remainder that has the sign of `x`.
#[custom_op(precompiled)]
pub fn fmod<T: Float>(x: T, y: T) -> T {
    x.fmod(y)
}

/// `x` raised to the power `y`; `0⁰ = 1`. A negative power of an integer is rounded towards 0.
#[custom_op(alias = "pow", inplace)]
pub fn power<T: Num>(x: T, y: T) -> T {
    x.pow(y)
}

/// `−x`.
#[custom_op(alias = "neg", linear = x, inplace)]
pub fn negative<T: Num>(x: T) -> T {
    -x
}

/// Returns `x` unchanged.
#[custom_op]
pub fn positive<T: Num>(x: T) -> T {
    x
}

/// `|x|`. Its derivative at 0 is 0.
#[custom_op(alias = "absolute", inplace)]
pub fn abs<T: Real>(x: T) -> T {
    x.abs()
}

/// −1, 0 or 1; NaN stays NaN.
#[custom_op]
pub fn sign<T: Real>(x: T) -> T {
    x.sign()
}

/// `x²`.
#[custom_op(inplace)]
pub fn square<T: Num>(x: T) -> T {
    x.square()
}

/// `1 / x`.
#[custom_op(inplace)]
pub fn reciprocal<T: Field>(x: T) -> T {
    x.recip()
}

/// The larger of `x` and `y`; NaN if either is NaN. If they are equal, each gets half of the gradient.
#[custom_op]
pub fn maximum<T: Real>(x: T, y: T) -> T {
    x.maximum(y)
}

/// The smaller of `x` and `y`; NaN if either is NaN. If they are equal, each gets half of the gradient.
#[custom_op]
pub fn minimum<T: Real>(x: T, y: T) -> T {
    x.minimum(y)
}

/// Limits every element to `[lo, hi]`; NaN stays NaN.
#[custom_op(alias = "clip", inplace, where lo <= hi)]
pub fn clamp<T: Real>(x: T, #[default = f64::NEG_INFINITY] lo: f64, #[default = f64::INFINITY] hi: f64) -> T {
    if x < lo {
        lo
    } else if x > hi {
        hi
    } else {
        x
    }
}

/// `√(x² + y²)`, without intermediate overflow.
#[custom_op(symmetric, precompiled)]
pub fn hypot<T: Float>(x: T, y: T) -> T {
    x.hypot(y)
}

/// The magnitude of `x` with the sign of `y`.
#[custom_op(precompiled)]
pub fn copysign<T: Float>(x: T, y: T) -> T {
    x.copysign(y)
}

/// `start + weight · (end − start)`.
#[custom_op(precompiled)]
pub fn lerp<T: Float>(start: T, end: T, weight: T) -> T {
    start + weight * (end - start)
}
