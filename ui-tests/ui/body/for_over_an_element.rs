use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    let mut total = 0.0;
    for v in x {
        total += v;
    }
    total
}

fn main() {}
