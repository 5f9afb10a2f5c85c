use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    Ok(x.exp() + bias)
}

fn main() {}
