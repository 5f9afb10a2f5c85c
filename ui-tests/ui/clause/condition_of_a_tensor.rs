use minitensor::prelude::*;

/// An op.
#[custom_op(where x > 0.0)]
pub fn op<T: Float>(x: T) -> T {
    x.log()
}

fn main() {}
