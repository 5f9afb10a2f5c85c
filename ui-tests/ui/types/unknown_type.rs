use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, mode: Modus) -> T {
    x
}

fn main() {}
