use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    let mut total = x;
    for _ in 0..x {
        total = total * 2.0;
    }
    total
}

fn main() {}
