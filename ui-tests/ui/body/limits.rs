use minitensor::prelude::*;

/// At least −∞.
#[custom_op]
pub fn least<T: Float>(x: T) -> T {
    x.maximum(T::neg_infinity())
}

/// At most the largest number, and at least the smallest.
#[custom_op]
pub fn limited<T: Float>(x: T) -> T {
    x.minimum(T::max_value()).maximum(T::min_value())
}

fn main() {}
