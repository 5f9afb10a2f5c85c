use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor) -> Result<Tensor> {
    Ok(x.sum(axis = Some('a')))
}

fn main() {}
