use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: num_traits::Float>(x: T) -> T {
    x
}

fn main() {}
