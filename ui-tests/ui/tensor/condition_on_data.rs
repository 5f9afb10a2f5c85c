use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    if x > 0.0 { Ok(x.clone()) } else { Ok(y.clone()) }
}

fn main() {}
