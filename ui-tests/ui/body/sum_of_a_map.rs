use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    (1..=4).map(|k| x / k).sum()
}

fn main() {}
