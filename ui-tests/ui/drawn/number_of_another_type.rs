use minitensor::prelude::*;

/// `x` plus noise.
#[custom_op]
fn noisy<T: Float>(x: T, #[normal] noise: f64) -> T {
    x + noise
}

fn main() {}
