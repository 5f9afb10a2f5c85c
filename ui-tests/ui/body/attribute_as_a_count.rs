use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, n: f64) -> T {
    let mut y = x;
    for _ in 0..n {
        y = y * x;
    }
    y
}

fn main() {}
