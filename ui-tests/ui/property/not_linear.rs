use minitensor::prelude::*;

/// The position of the nearest integer.
#[custom_op(linear = x, dtype = (x: T) -> i64)]
pub fn nearest<T: Float>(x: T) -> T {
    x.round()
}

/// A weighted average.
#[custom_op(linear = (x, wieght))]
pub fn average<T: Float>(x: T, weight: T) -> T {
    x * weight
}

/// Twice the input.
#[custom_op(linear)]
pub fn twice<T: Float>(x: T) -> T {
    2.0 * x
}

fn main() {}
