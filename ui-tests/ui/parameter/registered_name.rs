use minitensor::prelude::*;

/// Doubles.
#[custom_op(name = "a::b::double", alias = ["dou ble", "class"])]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
