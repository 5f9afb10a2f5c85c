use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Real>(x: T) -> T {
    T::infinity()
}

fn main() {}
