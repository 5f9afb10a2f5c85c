use minitensor::prelude::*;

/// The first tensor, times `w` if it is given.
#[custom_op]
pub fn first(w: Option<&Tensor>, tensors: &[&Tensor]) -> Result<Tensor> {
    Ok(if let Some(w) = w { tensors[0] * w } else { tensors[0].clone() })
}

fn main() {}
