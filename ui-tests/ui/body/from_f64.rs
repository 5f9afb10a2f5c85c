use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    x * T::from_f64(0.5)
}

fn main() {}
