use minitensor::prelude::*;

/// `x` plus noise, times `key`.
#[custom_op]
fn noisy<T: Float>(x: T, key: T, #[uniform] noise: T) -> T {
    x + noise * key
}

fn main() {}
