//! Checks of batches: a batch of calls computes what the calls compute.

use super::gradcheck::cotangent;
use super::gradients::{checked, has_gradient};
use super::sample::Sample;
use super::values::close;
use crate::autograd::{Options, grad};
use crate::error::{Error, Result};
use crate::graph::{Batch, Randomness};
use crate::op::by_name::names;
use crate::op::{Arg, OpName, OpRef, dispatch_one};
use crate::tensor::Tensor;

static FLIP: OpName = OpName::new("flip");
static SLICE: OpName = OpName::new("slice");
static SQUEEZE: OpName = OpName::new("squeeze");
static STACK: OpName = OpName::new("stack");

/// The number of examples.
const SIZE: usize = 3;

/// The op with a batch as each input, and as all inputs, must compute what it computes for each example, and so must its
/// gradient.
pub fn batch_is_the_loop(op: &OpRef, sample: &Sample) -> Result<()> {
    // A program may not link the built-in ops.
    if STACK.get().is_err() || sample.inputs.iter().flatten().any(|t| t.expect_cpu().is_err()) {
        return Ok(());
    }
    let given: Vec<usize> = (0..sample.inputs.len()).filter(|i| sample.inputs[*i].is_some()).collect();
    let single = given.iter().filter(|_| given.len() > 1).map(|i| vec![*i]);
    for batched in std::iter::once(given.clone()).filter(|all| !all.is_empty()).chain(single) {
        compare(op, sample, &batched, &[])?;
        let which = checked(op, sample);
        if has_gradient(op) && !which.is_empty() {
            compare(op, sample, &batched, &which)?;
        }
    }
    Ok(())
}

fn stacked(tensors: &[Tensor]) -> Result<Tensor> {
    let args: Vec<Arg<'_>> = tensors.iter().map(Arg::Tensor).collect();
    dispatch_one(STACK.get()?, &args, &[crate::attr::Attr::Int(0)])
}

/// The inputs, with the examples along the first axis of those in `batched`. Those in `which` require a gradient.
fn inputs(sample: &Sample, batched: &[usize], which: &[usize]) -> Result<Sample> {
    sample.map(|i, t| {
        let other = FLIP.call(&[t.into()], &[])?;
        let all = if batched.contains(&i) { stacked(&[t.clone(), other, t.clone()])? } else { t.copied()? };
        if which.contains(&i) { all.detach().with_requires_grad() } else { Ok(all) }
    })
}

/// The results of the op. It does not change the inputs.
fn call(op: &OpRef, sample: &Sample) -> Result<Vec<Tensor>> {
    let own = |i: usize, t: &Tensor| {
        if op.parameter(i).mutated { names::CLONE.call(&[t.into()], &[]) } else { Ok(t.clone()) }
    };
    let sample = sample.map(own)?;
    let mut results = sample.call(op)?;
    let changed = sample.inputs.into_iter().enumerate().filter(|(i, _)| op.parameter(*i).mutated);
    results.extend(changed.filter_map(|(_, t)| t));
    Ok(results)
}

fn one_by_one(op: &OpRef, sample: &Sample, batched: &[usize]) -> Result<Vec<Tensor>> {
    let mut parts: Vec<Vec<Tensor>> = Vec::new();
    for k in 0..SIZE as i64 {
        let part = |i: usize, t: &Tensor| match batched.contains(&i) {
            true => {
                let one = SLICE.call(&[t.into(), 0i64.into(), k.into(), (k + 1).into()], &[])?;
                SQUEEZE.call(&[(&one).into(), vec![0i64].into()], &[])
            }
            false => Ok(t.clone()),
        };
        let results = call(op, &sample.map(part)?)?;
        parts.resize(results.len(), Vec::new());
        parts.iter_mut().zip(results).for_each(|(part, t)| part.push(t));
    }
    parts.iter().map(|part| stacked(part)).collect()
}

fn together(op: &OpRef, sample: &Sample, batched: &[usize]) -> Result<Vec<Tensor>> {
    let tensors = batched.iter().filter_map(|i| sample.inputs[*i].clone()).collect();
    let (batch, mut examples) = Batch::start(tensors, SIZE)?;
    let mut inner = sample.clone();
    batched.iter().rev().for_each(|i| inner.inputs[*i] = examples.pop());
    let results = call(op, &inner)?;
    batch.finish(&results, Randomness::Error)?.run()
}

/// The results, then the gradients of the inputs `which`.
fn with_gradients(sample: &Sample, which: &[usize], results: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let differentiable: Vec<Tensor> = results.iter().filter(|t| t.requires_grad()).cloned().collect();
    if which.is_empty() || differentiable.is_empty() {
        return Ok(results);
    }
    let leaves: Vec<Tensor> = which.iter().filter_map(|i| sample.inputs[*i].clone()).collect();
    let cotangents =
        differentiable.iter().enumerate().map(|(k, t)| cotangent(t, k).map(Some)).collect::<Result<Vec<_>>>()?;
    let options = Options { create_graph: false, ..Options::default() };
    let gradients = grad(&differentiable, &leaves, &cotangents, options)?;
    Ok(results.into_iter().chain(gradients.into_iter().flatten()).collect())
}

fn compare(op: &OpRef, sample: &Sample, batched: &[usize], which: &[usize]) -> Result<()> {
    let all = inputs(sample, batched, which)?;
    let run = |results: Result<Vec<Tensor>>| results.and_then(|results| with_gradients(&all, which, results));
    // The op may reject the other example, or return another number of elements.
    let Ok(expected) = run(one_by_one(op, &all, batched)) else { return Ok(()) };
    let got = match run(together(op, &all, batched)) {
        Err(error) if error.message().contains("draws random numbers") => return Ok(()),
        got => got?,
    };
    if expected.len() != got.len() {
        return Err(Error::runtime(format!("a batch gives {} tensors, expected {}", got.len(), expected.len())));
    }
    for (k, (a, b)) in expected.iter().zip(&got).enumerate() {
        if !close(a, b, 1e-9)? {
            return Err(Error::runtime(format!(
                "a batch of the inputs {batched:?} computes another tensor {k}: expected {a}, got {b}"
            )));
        }
    }
    Ok(())
}
