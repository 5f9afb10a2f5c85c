use minitensor::prelude::*;

/// Noise with the mean 0.
#[custom_op]
fn centered<T: Float>(x: T, #[uniform] noise: T) -> T {
    x + noise - noise.mean()
}

fn main() {}
