use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, #[default = 1.0] n: usize) -> T {
    x
}

fn main() {}
