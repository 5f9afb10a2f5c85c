use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Real>(x: T) -> T {
    x.powf(0.5)
}

fn main() {}
