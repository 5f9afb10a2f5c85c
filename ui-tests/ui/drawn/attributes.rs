use minitensor::prelude::*;

/// A sample of a normal distribution.
#[custom_op]
fn sample<T: Float>(x: T, #[normal(0.0, 2.0)] z: T) -> T {
    x + z
}

/// A sum of two random numbers.
#[custom_op]
fn sum<T: Float>(x: T, #[normal] #[uniform] z: T) -> T {
    x + z
}

/// Random integers.
#[custom_op]
fn integers<T: Int>(x: T, #[uniform] u: T) -> T {
    x + u
}

/// Noise where a mask is true.
#[custom_op]
fn masked<T: Float>(x: T, mask: Option<T::Mask>, #[uniform] u: T) -> T {
    if let Some(mask) = mask { if mask { x + u } else { x } } else { x + u }
}

fn main() {}
