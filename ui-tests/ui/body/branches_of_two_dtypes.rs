use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float, U: Int>(x: T, y: U) -> T {
    if x > 0.0 { x } else { y }
}

fn main() {}
