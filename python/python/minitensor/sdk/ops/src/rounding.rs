//! Rounding. The gradient is 0.

use minitensor::prelude::*;

/// Rounds down.
#[custom_op(inplace)]
pub fn floor<T: Real>(x: T) -> T {
    x.floor()
}

/// Rounds up.
#[custom_op(inplace)]
pub fn ceil<T: Real>(x: T) -> T {
    x.ceil()
}

/// Rounds to the nearest whole number, halves to the even one.
#[custom_op(inplace)]
pub fn round<T: Real>(x: T) -> T {
    x.round()
}

/// Rounds towards 0.
#[custom_op(inplace)]
pub fn trunc<T: Real>(x: T) -> T {
    x.trunc()
}
