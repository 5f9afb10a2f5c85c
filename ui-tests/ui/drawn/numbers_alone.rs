use minitensor::prelude::*;

/// Noise.
#[custom_op]
fn noise<T: Float>(#[uniform] u: T) -> T {
    2.0 * u - 1.0
}

fn main() {}
