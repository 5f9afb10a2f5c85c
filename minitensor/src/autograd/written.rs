//! [`gradients`]: the gradient that a definition states, by formulas or functions in reverse or forward mode.

use super::backward_call::BackwardCall;
use super::engine::grad_since;
use super::mode::{EnableGrad, is_grad_enabled};
use super::node::next_sequence;
use super::reach::depends;
use crate::error::{Error, Result, counted};
use crate::op::by_name::{names, reshape};
use crate::op::{BackwardBody, Formula, Mode};
use crate::tensor::{Shape, Tensor};

/// The gradients of the inputs of a call that need one.
pub(super) fn gradients(formula: &Formula, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
    match formula.mode {
        Mode::Reverse => formula.run.call(call),
        Mode::Forward => transposed(&formula.run, call),
    }
}

/// The tangents of the outputs are linear in those of the inputs: `dy = J dx`. So the gradient `Jᵀ d` is the derivative of `⟨d, J dx⟩` with
/// respect to `dx`, at any `dx`; here at zero.
fn transposed(run: &BackwardBody, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
    let create_graph = is_grad_enabled();
    let start = next_sequence();
    let tangents = (0..call.num_inputs()).map(|i| zero_tangent(call, i)).collect::<Result<Vec<_>>>()?;
    let results = {
        let _enabled = EnableGrad::new();
        pushed(run, &call.with_tangents(&tangents, !create_graph)?)?
    };
    let (mut outputs, mut cotangents) = (Vec::new(), Vec::new());
    for (k, tangent) in results {
        if !depends(start, &tangent, &tangents)? {
            return Err(constant(call, k));
        }
        if call.cotangent_if_any(k).is_some() {
            cotangents.push(Some(call.cotangent(k)?));
            outputs.push(tangent);
        }
    }
    let needed: Vec<usize> = (0..tangents.len()).filter(|i| call.needs(*i)).collect();
    let leaves: Vec<Tensor> = needed.iter().map(|i| tangents[*i].clone()).collect();
    let found = grad_since(start, &outputs, &leaves, &cotangents, create_graph)?;
    let mut gradients = vec![None; tangents.len()];
    for ((i, gradient), leaf) in needed.into_iter().zip(found).zip(leaves) {
        gradients[i] = Some(gradient.unwrap_or_else(|| leaf.detach()));
    }
    Ok(gradients)
}

#[cold]
fn constant(call: &BackwardCall<'_>, output: usize) -> Error {
    let (op, name) = (&call.op().name, call.output_name(output));
    Error::runtime(format!(
        "op '{op}': its jvp returned a tangent for the output '{name}' that ops do not compute from the tangents of the inputs; compute \
         it from them, or return none if it is zero"
    ))
}

/// Zeros like an input, as the function sees it. The tangent of an input that was not given has no dimensions.
fn zero_tangent(call: &BackwardCall<'_>, input: usize) -> Result<Tensor> {
    let dtype = call.dtype(input).compute();
    let zero = Tensor::zeros([], dtype, call.device())?;
    if !call.is_given(input) {
        return Ok(zero);
    }
    let sizes: Vec<usize> = call.shape(input).iter().map(|size| *size as usize).collect();
    let zeros = reshape::expand(&zero, &sizes.into())?.detach();
    if dtype.is_differentiable() { zeros.with_requires_grad() } else { Ok(zeros) }
}

/// The outputs whose tangents are not zero, with the tangents in their shapes.
fn pushed(run: &BackwardBody, call: &BackwardCall<'_>) -> Result<Vec<(usize, Tensor)>> {
    let tangents = run.call(call)?;
    if tangents.len() != call.num_outputs() {
        return Err(Error::runtime(format!(
            "op '{}': its jvp returned {} for {}; correct the jvp",
            call.op().name,
            counted(tangents.len(), "tangent"),
            counted(call.num_outputs(), "output")
        )));
    }
    let given = tangents.into_iter().enumerate().filter_map(|(k, tangent)| Some((k, tangent?)));
    given.map(|(k, tangent)| Ok((k, fitted(call, k, tangent)?))).collect()
}

/// A tangent in the shape and dtype of its output.
fn fitted(call: &BackwardCall<'_>, output: usize, tangent: Tensor) -> Result<Tensor> {
    let shape: Shape = call.output_shape(output)?.iter().map(|size| *size as usize).collect::<Vec<_>>().into();
    if tangent.shape().broadcast(&shape).as_ref() != Some(&shape) {
        return Err(Error::runtime(format!(
            "op '{}': its jvp returned a tangent of shape {} for the output '{}' of shape {shape}; correct the jvp",
            call.op().name,
            tangent.shape(),
            call.output_name(output)
        )));
    }
    let tangent = if *tangent.shape() == shape { tangent } else { reshape::expand(&tangent, &shape)? };
    let is_real = !call.output_dtype(output).is_complex();
    if is_real && tangent.dtype().is_complex() { names::REAL.call(&[(&tangent).into()], &[]) } else { Ok(tangent) }
}
