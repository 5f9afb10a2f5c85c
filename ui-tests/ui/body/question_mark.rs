use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    x.checked_div(2.0)?
}

fn main() {}
