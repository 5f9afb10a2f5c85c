use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    x.rsub(1.0).clamp_min(0.0)
}

fn main() {}
