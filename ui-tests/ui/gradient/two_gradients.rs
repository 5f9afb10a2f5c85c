use minitensor::prelude::*;

/// A test.
#[custom_op(backward = |d| { x: d * y, y: d * x }, jvp = |dx, dy| { out: dx * y + x * dy })]
pub fn op<T: Float>(x: T, y: T) -> T {
    x * y
}

fn main() {}
