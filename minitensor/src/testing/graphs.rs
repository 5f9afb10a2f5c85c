//! Checks of graphs: a recorded call runs like the call.

use super::gradcheck::cotangent;
use super::gradients::{checked, has_gradient};
use super::sample::Sample;
use super::values::close;
use crate::autograd::{Options, grad};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Recording, Traced};
use crate::op::{Backward, Body, OpDef, OpName, OpRef};
use crate::random::manual_seed;
use crate::tensor::Tensor;

static FLIP: OpName = OpName::new("flip");
static NEGATIVE: OpName = OpName::new("negative");

/// A graph of the op, recorded with one sample, must compute the same bits as the op for another sample, and so must
/// its gradient. The graph also contains a call that may be fused with the op.
pub fn graph_is_the_op(op: &OpRef, sample: &Sample) -> Result<()> {
    // A program may not link the built-in ops.
    let has_ops = FLIP.get().is_ok() && NEGATIVE.get().is_ok();
    if !has_ops || sample.inputs.iter().flatten().any(|t| t.expect_cpu().is_err()) {
        return Ok(());
    }
    // Other elements in the same ranges.
    let other = sample.map(|_, t| FLIP.call(&[t.into()], &[])?.copied())?;
    let which = checked(op, sample);
    let is_checked = has_gradient(op) && !which.is_empty();
    for dtype in [DType::F64, DType::F32, DType::F16, DType::Bf16] {
        let in_dtype = |_: usize, t: &Tensor| if t.dtype() == DType::F64 { t.cast(dtype) } else { Ok(t.clone()) };
        let (sample, other) = (sample.map(in_dtype)?, other.map(in_dtype)?);
        let compared = || {
            compare(op, &sample, &other, &[])?;
            if is_checked { compare(op, &sample, &other, &which) } else { Ok(()) }
        };
        compared().map_err(|e: Error| e.context(dtype.name()))?;
    }
    Ok(())
}

/// The relative difference between a call and a graph with it. The program of a cell body may add in another order; that of
/// a row body does not.
pub(super) fn tolerance(op: &OpDef) -> f64 {
    match (&op.body, &op.backward) {
        (Body::Cell(Some(_)), Backward::Formula(_) | Backward::Program(_)) => 1e-5,
        _ => 0.0,
    }
}

/// The op, and the negatives of its float results.
pub(super) fn function(op: &OpRef, sample: &Sample) -> Result<Vec<Tensor>> {
    let mut results = sample.call(op)?;
    for k in 0..results.len() {
        if results[k].dtype().is_differentiable() {
            results.push(NEGATIVE.call(&[(&results[k]).into()], &[])?);
        }
    }
    let changed = sample.inputs.iter().enumerate().filter(|(i, _)| op.parameter(*i).mutated);
    results.extend(changed.filter_map(|(_, t)| t.clone()));
    Ok(results)
}

/// The results, then the gradients of the inputs `which`.
pub(super) fn with_gradients(inputs: &[Option<Tensor>], which: &[usize], results: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let differentiable: Vec<Tensor> = results.iter().filter(|t| t.requires_grad()).cloned().collect();
    if which.is_empty() || differentiable.is_empty() {
        return Ok(results);
    }
    let leaves: Vec<Tensor> = which.iter().filter_map(|i| inputs[*i].clone()).collect();
    let cotangents =
        differentiable.iter().enumerate().map(|(k, t)| cotangent(t, k).map(Some)).collect::<Result<Vec<_>>>()?;
    let gradients = grad(&differentiable, &leaves, &cotangents, Options::default())?;
    Ok(results.into_iter().chain(gradients.into_iter().flatten()).collect())
}

/// Compares a call with its graph, whose gradients of the inputs `which` are computed, too.
fn compare(op: &OpRef, sample: &Sample, other: &Sample, which: &[usize]) -> Result<()> {
    let copied = |sample: &Sample| {
        sample.map(|i, t| if which.contains(&i) { t.copied()?.with_requires_grad() } else { t.copied() })
    };
    let (first, second, eager) = (copied(sample)?, copied(other)?, copied(other)?);
    manual_seed(0);
    let Ok(expected) = function(op, &eager).and_then(|results| with_gradients(&eager.inputs, which, results)) else {
        return Ok(());
    };
    let tensors = |sample: &Sample| sample.inputs.iter().flatten().cloned().collect::<Vec<Tensor>>();
    let recording = Recording::start(&tensors(&first))?;
    let results = function(op, &first)?;
    let (traced, _) = Traced::new(recording, &tensors(&first), &results, &[])?;
    manual_seed(0);
    let results = traced.run(&tensors(&second), &[])?;
    let got = with_gradients(&second.inputs, which, results)?;
    if expected.len() != got.len() {
        return Err(Error::runtime(format!("its graph gives {} tensors, expected {}", got.len(), expected.len())));
    }
    for (k, (a, b)) in expected.iter().zip(&got).enumerate() {
        if !close(a, b, tolerance(op))? {
            return Err(Error::runtime(format!(
                "its graph computes another tensor {k}: expected {a}, got {b}\n{}",
                traced.graph()
            )));
        }
    }
    Ok(())
}
