use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor) -> Result<(Tensor, Tensor)> {
    x.topk(2)
}

fn main() {}
