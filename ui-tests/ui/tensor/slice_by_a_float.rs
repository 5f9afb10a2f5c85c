use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op(x: &Tensor, #[default = 0.5] c: f64) -> Result<Tensor> {
    Ok(x[c])
}

fn main() {}
