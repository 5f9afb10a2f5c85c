use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor, y: &Tensor) -> Tensor {
    x + y
}

fn main() {}
