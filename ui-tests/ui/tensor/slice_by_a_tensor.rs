use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    Ok(x[(.., y)])
}

fn main() {}
