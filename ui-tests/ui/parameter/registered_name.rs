use minitensor::prelude::*;

/// Doubles.
#[custom_op(name = "a:double", alias = ["dou ble", "ns::class", "__double"])]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
