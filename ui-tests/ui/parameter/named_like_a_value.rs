use minitensor::prelude::*;

/// Not in order.
#[custom_op]
pub fn scaled<T: Float>(x: T, None: T, Some: f64) -> T {
    x * Some
}

fn main() {}
