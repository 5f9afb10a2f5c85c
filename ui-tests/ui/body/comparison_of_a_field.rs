use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Field>(x: T) -> T {
    if x > 0.0 { x } else { -x }
}

fn main() {}
