//! Elementwise trigonometric and hyperbolic functions. Angles are in radians.

use minitensor::prelude::*;

/// The sine.
#[custom_op(inplace)]
pub fn sin<T: Field>(x: T) -> T {
    x.sin()
}

/// The cosine.
#[custom_op(inplace)]
pub fn cos<T: Field>(x: T) -> T {
    x.cos()
}

/// The tangent.
#[custom_op(inplace)]
pub fn tan<T: Field>(x: T) -> T {
    x.tan()
}

/// The inverse sine, in `[−π/2, π/2]`; NaN outside `[−1, 1]`.
#[custom_op(alias = "arcsin", inplace)]
pub fn asin<T: Field>(x: T) -> T {
    x.asin()
}

/// The inverse cosine, in `[0, π]`; NaN outside `[−1, 1]`.
#[custom_op(alias = "arccos", inplace)]
pub fn acos<T: Field>(x: T) -> T {
    x.acos()
}

/// The inverse tangent, in `[−π/2, π/2]`.
#[custom_op(alias = "arctan", inplace)]
pub fn atan<T: Field>(x: T) -> T {
    x.atan()
}

/// The hyperbolic sine.
#[custom_op(inplace)]
pub fn sinh<T: Field>(x: T) -> T {
    x.sinh()
}

/// The hyperbolic cosine.
#[custom_op(inplace)]
pub fn cosh<T: Field>(x: T) -> T {
    x.cosh()
}

/// The hyperbolic tangent.
#[custom_op(inplace)]
pub fn tanh<T: Field>(x: T) -> T {
    x.tanh()
}

/// The inverse hyperbolic sine.
#[custom_op(alias = "arcsinh", inplace)]
pub fn asinh<T: Field>(x: T) -> T {
    x.asinh()
}

/// The inverse hyperbolic cosine; NaN below 1.
#[custom_op(alias = "arccosh", inplace)]
pub fn acosh<T: Field>(x: T) -> T {
    x.acosh()
}

/// The inverse hyperbolic tangent; NaN outside `[−1, 1]`.
#[custom_op(alias = "arctanh", inplace)]
pub fn atanh<T: Field>(x: T) -> T {
    x.atanh()
}

/// The angle of the point (`y`, `x`) in the plane: `atan(x / y)`, in the correct quadrant. The first argument is the
/// ordinate.
#[custom_op(alias = "arctan2", precompiled)]
pub fn atan2<T: Float>(x: T, y: T) -> T {
    x.atan2(y)
}
