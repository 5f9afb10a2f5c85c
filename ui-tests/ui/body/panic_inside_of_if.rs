use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    if x < 0.0 {
        panic!("negative");
    } else {
        x.sqrt()
    }
}

fn main() {}
