use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    if x.is_sign_positive() { x } else { -x }
}

fn main() {}
