use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Num>(x: T) -> T {
    x / 2
}

fn main() {}
