//! Elementwise comparisons. The results are booleans.

use minitensor::prelude::*;

/// `x == y`; NaN equals nothing.
#[custom_op(alias = "eq", symmetric)]
pub fn equal<T: Element>(x: T, y: T) -> T::Mask {
    x == y
}

/// `x != y`.
#[custom_op(alias = "ne", symmetric)]
pub fn not_equal<T: Element>(x: T, y: T) -> T::Mask {
    x != y
}

/// `x < y`.
#[custom_op(alias = "lt")]
pub fn less<T: Real>(x: T, y: T) -> T::Mask {
    x < y
}

/// `x <= y`.
#[custom_op(alias = "le")]
pub fn less_equal<T: Real>(x: T, y: T) -> T::Mask {
    x <= y
}

/// `x > y`.
#[custom_op(alias = "gt")]
pub fn greater<T: Real>(x: T, y: T) -> T::Mask {
    x > y
}

/// `x >= y`.
#[custom_op(alias = "ge")]
pub fn greater_equal<T: Real>(x: T, y: T) -> T::Mask {
    x >= y
}

/// True if `x` is NaN.
#[custom_op]
pub fn isnan<T: Real>(x: T) -> T::Mask {
    x.isnan()
}

/// True if `x` is infinite.
#[custom_op]
pub fn isinf<T: Real>(x: T) -> T::Mask {
    x.isinf()
}

/// True if `x` is neither NaN nor infinite.
#[custom_op]
pub fn isfinite<T: Real>(x: T) -> T::Mask {
    !(x.isnan() || x.isinf())
}

/// True if the sign bit of `x` is set, as it is for −0.
#[custom_op]
pub fn signbit<T: Real>(x: T) -> T::Mask {
    x.signbit()
}
