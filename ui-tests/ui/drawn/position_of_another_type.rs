use minitensor::prelude::*;

/// `x` times its position.
#[custom_op]
fn scaled<T: Float>(x: T, #[position(axis)] at: T, axis: f64) -> T {
    x * at + axis
}

/// Adds noise to `x`.
#[custom_op]
fn add_noise<T: Float>(x: &mut T, #[uniform] u: T) {
    *x = *x + u;
}

fn main() {}
