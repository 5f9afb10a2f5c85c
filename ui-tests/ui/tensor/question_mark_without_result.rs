use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor) -> Tensor {
    x.reshape([1])?
}

fn main() {}
