//! Compares a written gradient with the one that is derived from the program of the op.

use std::sync::Arc;

use super::computed::computed;
use super::gradcheck::cotangent;
use super::gradients::{checked, function, inputs};
use super::programs::program;
use super::sample::Sample;
use super::values::{Random, numbers, tensor_like};
use crate::autograd::{Options, grad};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Backward, Gradients, OpDef, OpRef};
use crate::tensor::Tensor;

/// The largest difference, relative to the gradient of the element.
const RELATIVE: f64 = 1e-10;
/// The largest difference, relative to the largest gradient of the input: terms of this size may cancel.
const CANCELLED: f64 = 1e-13;

/// Finite differences see only some digits of a gradient. A derived gradient has nearly all of them, and a formula must agree with it.
pub fn formula_is_the_derivative(op: &OpRef, sample: &Sample) -> Result<()> {
    let which = checked(op, sample);
    let is_written = matches!(op.backward, Backward::Formula(_)) && op.inputs.iter().all(|i| !i.mutated);
    if !is_written || which.is_empty() || program(op, sample)?.is_none() {
        return Ok(());
    }
    let derived = OpDef { backward: Backward::Program(Gradients::new()), ..OpDef::clone(op) };
    let sample = moved(op, sample)?;
    // A program may have no derivative, which is a reason for a formula.
    let Ok(derived) = gradients(&OpRef::Shared(Arc::new(derived)), &sample, &which) else { return Ok(()) };
    for ((written, derived), i) in gradients(op, &sample, &which)?.iter().zip(&derived).zip(&which) {
        let largest = derived.iter().copied().filter(|g| g.is_finite()).fold(0.0, |a: f64, g| a.max(g.abs()));
        let is_close = |(a, b): (&f64, &f64)| {
            a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= RELATIVE * b.abs() + CANCELLED * largest
        };
        if let Some(at) = written.iter().zip(derived).position(|pair| !is_close(pair)) {
            return Err(Error::runtime(format!(
                "the gradient of '{}' is {:?} by the formula, but {:?} by the derivative of the body, at element {at}; \
                 correct the formula, or remove it",
                op.parameter(*i).name,
                written[at],
                derived[at]
            )));
        }
    }
    Ok(())
}

/// The sample with other numbers nearby. Where a function has a kink, or a maximum has a tie, several gradients are correct. Random
/// numbers are not there.
fn moved(op: &OpRef, sample: &Sample) -> Result<Sample> {
    let computed = computed(op);
    sample.map(|i, t| {
        if t.dtype() != DType::F64 || computed.contains(&i) {
            return Ok(t.clone());
        }
        let mut random = Random::new(i as u64);
        tensor_like(t, numbers(t)?.into_iter().map(|x| x + random.between(-1e-3, 1e-3)).collect())
    })
}

/// The gradients of some inputs, for cotangents that are not all 1.
fn gradients(op: &OpRef, sample: &Sample, which: &[usize]) -> Result<Vec<Vec<f64>>> {
    let leaves: Vec<Tensor> =
        inputs(sample, which).into_iter().map(|t| t.detach().with_requires_grad()).collect::<Result<_>>()?;
    let outputs = function(op, sample, which)(&leaves)?;
    let outputs: Vec<Tensor> = outputs.into_iter().filter(Tensor::requires_grad).collect();
    let cotangents = outputs.iter().enumerate().map(|(k, t)| cotangent(t, k).map(Some)).collect::<Result<Vec<_>>>()?;
    let found = grad(&outputs, &leaves, &cotangents, Options::default())?;
    found.iter().zip(&leaves).map(|(g, t)| g.as_ref().map_or_else(|| Ok(vec![0.0; t.numel()]), numbers)).collect()
}
