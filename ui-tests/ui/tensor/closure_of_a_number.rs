use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let rank = |a: &Tensor| (a * 2.0).ndim();
    Ok(x * rank(y))
}

fn main() {}
