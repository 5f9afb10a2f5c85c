use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, f: impl Fn(T) -> T) -> T {
    f(x)
}

fn main() {}
