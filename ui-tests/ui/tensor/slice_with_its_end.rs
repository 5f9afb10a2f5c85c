use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor) -> Result<Tensor> {
    Ok(x[(.., 0..=2)])
}

fn main() {}
