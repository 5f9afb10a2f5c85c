use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let z = x.exp();
    (z + y).sqrt()
}

fn main() {}
