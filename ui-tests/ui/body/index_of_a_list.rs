use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    let list = [x, x + 1.0];
    x * list[x]
}

fn main() {}
