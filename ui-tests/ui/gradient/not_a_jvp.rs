use minitensor::prelude::*;

/// A test.
#[custom_op(jvp = none)]
pub fn op<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
