use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let copy = x.clone();
    Ok(copy.0 + y.1)
}

fn main() {}
