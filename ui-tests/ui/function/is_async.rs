use minitensor::prelude::*;

/// Doubles.
#[custom_op]
pub async fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
