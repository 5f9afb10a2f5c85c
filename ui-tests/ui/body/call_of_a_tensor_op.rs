use minitensor::prelude::*;

/// `2 x`.
#[custom_op]
pub fn doubled<T: Num>(x: T) -> T {
    x + x
}

/// An op.
#[custom_op]
pub fn op<T: Num>(x: T) -> T {
    doubled::call(x)
}

fn main() {}
