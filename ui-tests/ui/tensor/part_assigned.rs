use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let mut z = x * y;
    z[0] = y.clone();
    Ok(z)
}

fn main() {}
