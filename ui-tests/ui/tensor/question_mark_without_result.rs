use minitensor::prelude::*;

/// `2 x`.
#[custom_op]
pub fn double<T: Num>(x: T) -> T {
    x + x
}

/// An op.
#[custom_op]
pub fn op(x: &Tensor) -> Tensor {
    double::call(x)?
}

fn main() {}
