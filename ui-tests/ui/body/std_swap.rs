use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(mut x: T, mut y: T) -> T {
    if x > y { std::mem::swap(&mut x, &mut y) }
    x
}

fn main() {}
