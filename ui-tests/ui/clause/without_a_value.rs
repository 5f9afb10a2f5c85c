use minitensor::prelude::*;

/// Doubles.
#[custom_op(alias, since = "two", name = doubled)]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
