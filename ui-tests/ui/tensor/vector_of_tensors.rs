use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: Vec<Tensor>) -> Result<Tensor> {
    Ok(x[0].clone())
}

fn main() {}
