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

/// Rounds to the nearest integer, ties to even.
#[custom_op(inplace)]
pub fn round<T: Real>(x: T) -> T {
    x.round()
}

/// Rounds towards 0.
#[custom_op(inplace)]
pub fn trunc<T: Real>(x: T) -> T {
    x.trunc()
}
