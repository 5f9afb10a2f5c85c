use minitensor::prelude::*;

/// A test.
#[custom_op(jvp = |dx, dy| { x: dx * y + x * dy })]
pub fn op<T: Float>(x: T, y: T) -> T {
    x * y
}

fn main() {}
