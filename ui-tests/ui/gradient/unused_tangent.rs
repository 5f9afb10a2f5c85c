use minitensor::prelude::*;

/// A test.
#[custom_op(jvp = |dx, dy| { out: dx * y })]
pub fn op<T: Float>(x: T, y: T) -> T {
    x * y
}

fn main() {}
