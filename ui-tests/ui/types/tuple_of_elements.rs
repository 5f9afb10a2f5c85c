use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: (T, T)) -> T {
    x.0
}

fn main() {}
