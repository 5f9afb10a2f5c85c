//! The vector-Jacobian product of a call that was not recorded.

use crate::autograd::{EnableGrad, grad};
use crate::error::{Error, Result};
use crate::op::CustomOp;
use crate::op::def::OpRef;
use crate::tensor::Tensor;

/// The gradients of the inputs of a call, given only its tensors. It runs the op again and records the call.
pub fn vjp(op: &OpRef, inputs: &[&Tensor], cotangent: &Tensor) -> Result<Vec<Option<Tensor>>> {
    if let Some(input) = op.inputs.iter().find(|input| input.mutated) {
        let why = format!(
            "op '{}' changes '{}' in place, so it cannot run again to compute its gradient",
            op.name, input.name
        );
        return Err(Error::value(why));
    }
    let _on = EnableGrad::new();
    let leaves: Vec<Tensor> = inputs.iter().map(|t| t.detach()).collect();
    let wanted: Vec<&Tensor> = leaves.iter().filter(|t| t.dtype().is_differentiable()).collect();
    wanted.iter().try_for_each(|t| t.set_requires_grad(true))?;
    let output = op.forward(&leaves.iter().collect::<Vec<_>>())?;
    let wanted: Vec<Tensor> = wanted.into_iter().cloned().collect();
    let mut grads = grad(&[output], &wanted, &[Some(cotangent.clone())], Default::default())?.into_iter();
    Ok(leaves.iter().map(|t| if t.requires_grad() { grads.next().flatten() } else { None }).collect())
}
