use minitensor::prelude::*;

/// One of three.
#[custom_op]
pub fn pick<T: Float, U: Float, V: Float>(x: T, y: U, z: V) -> T {
    x
}

fn main() {}
