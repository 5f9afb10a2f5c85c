use minitensor::prelude::*;

/// Whether `x` is positive.
#[custom_op(inplace)]
pub fn positive<T: Real>(x: T) -> T::Mask {
    x > 0
}

fn main() {}
