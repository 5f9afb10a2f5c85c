use minitensor::prelude::*;

/// Twice `x`.
#[custom_op(inplace)]
pub fn doubled(x: &Tensor) -> Result<Tensor> {
    Ok(x * 2)
}

fn main() {}
