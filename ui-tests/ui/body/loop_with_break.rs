use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    let mut y = x;
    loop {
        y = y * 0.5;
        if y < 1.0 {
            break;
        }
    }
    y
}

fn main() {}
