use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    let mut y = x;
    'outer: for _ in 0..10 {
        for _ in 0..10 {
            y = y * 0.5;
            if y < 1.0 {
                break 'outer;
            }
        }
    }
    y
}

fn main() {}
