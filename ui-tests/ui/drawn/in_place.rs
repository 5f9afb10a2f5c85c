use minitensor::prelude::*;

/// `x` plus noise.
#[custom_op(inplace)]
fn noisy<T: Float>(x: T, #[uniform] noise: T) -> T {
    x + noise
}

fn main() {}
