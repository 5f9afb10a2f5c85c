use minitensor::prelude::*;

#[custom_op]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
