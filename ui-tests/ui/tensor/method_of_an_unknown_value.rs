use minitensor::prelude::*;

/// `2 x`.
#[op_fn]
fn double(x: &Tensor) -> Result<Tensor> {
    Ok(2 * x)
}

/// An op.
#[custom_op]
pub fn op(x: &Tensor) -> Result<Tensor> {
    let y = double(x)?;
    Ok(y.sqrt())
}

fn main() {}
