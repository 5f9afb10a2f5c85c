//! Checks of gradients.

use std::sync::Arc;

use super::computed::computed;
use super::gradcheck::{Function, GradCheck, compare, cotangent, gradcheck};
use super::programs::TOO_LONG;
use super::sample::Sample;
use super::values::{Random, close, numbers};
use crate::autograd::{Options, grad};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::DetachedApart;
use crate::op::by_name::names;
use crate::op::{Backward, Body, OpDef, OpRef};
use crate::random::manual_seed;
use crate::tensor::{Tensor, bytes_kept};

fn fail<T>(message: String) -> Result<T> {
    Err(Error::runtime(message))
}

/// Whether the op is differentiable: not if its gradient is `none`.
fn is_differentiable(op: &OpRef) -> bool {
    !matches!(op.backward, Backward::None(_) | Backward::NotNeeded)
}

/// Whether the op is differentiable and mutates no input.
pub(super) fn has_gradient(op: &OpRef) -> bool {
    is_differentiable(op) && op.inputs.iter().all(|i| !i.mutated)
}

/// Whether numbers of a dtype are in double precision.
fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::C128)
}

/// Positions of the inputs whose gradients are checked.
pub(super) fn checked(op: &OpRef, sample: &Sample) -> Vec<usize> {
    let without: &[u8] = match &op.backward {
        Backward::Formula(f) => &f.without,
        _ => &[],
    };
    let is_float = |i: &usize| sample.inputs[*i].as_ref().is_some_and(|t| is_wide(t.dtype()));
    let computed = computed(op);
    let is_constant = |i: usize| without.contains(&(i as u8)) || computed.contains(&i);
    (0..sample.inputs.len()).filter(is_float).filter(|i| !is_constant(*i)).collect()
}

/// The op as a function of its inputs in double precision. The other inputs are constant. Inputs that the op mutates are copied before, and returned
/// after its outputs.
pub(super) fn function<'a>(
    op: &'a OpRef,
    sample: &'a Sample,
    which: &'a [usize],
) -> impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'a {
    move |tensors: &[Tensor]| {
        manual_seed(0);
        let mut inputs = sample.inputs.clone();
        which.iter().zip(tensors).for_each(|(i, t)| inputs[*i] = Some(t.clone()));
        let is_mutated = |(i, _): &(usize, &mut Option<Tensor>)| op.parameter(*i).mutated;
        let mut mutated = Vec::new();
        for (_, slot) in inputs.iter_mut().enumerate().filter(is_mutated) {
            *slot = slot.as_ref().map(|t| names::CLONE.call(&[t.into()], &[])).transpose()?;
            mutated.extend(slot.clone());
        }
        let mut outputs = Sample { inputs, attrs: sample.attrs.clone() }.call(op)?;
        outputs.extend(mutated);
        Ok(outputs)
    }
}

pub(super) fn inputs(sample: &Sample, which: &[usize]) -> Vec<Tensor> {
    which.iter().filter_map(|i| sample.inputs[*i].clone()).collect()
}

/// Outputs must have a history if and only if an input requires a gradient. An op without a gradient must report it.
pub fn history_is_the_frameworks(op: &OpRef, sample: &Sample) -> Result<()> {
    let which = checked(op, sample);
    if which.is_empty() || op.inputs.iter().any(|i| i.mutated) {
        return Ok(());
    }
    let call = function(op, sample, &which);
    for t in call(&inputs(sample, &which))? {
        if t.requires_grad() {
            return fail("an output requires a gradient although no input does".into());
        }
    }
    let leaves: Vec<Tensor> =
        inputs(sample, &which).into_iter().map(Tensor::with_requires_grad).collect::<Result<_>>()?;
    for (k, t) in call(&leaves)?.iter().enumerate().filter(|(_, t)| t.dtype().is_differentiable()) {
        if !t.requires_grad() {
            return fail(format!(
                "output {k} has no history although its inputs require gradients, so a model would not learn, without \
                 an error; define a backward"
            ));
        }
        if let (Err(e), true) =
            (grad(std::slice::from_ref(t), &leaves, &[Some(cotangent(t, 0)?)], retain()), has_gradient(op))
        {
            return fail(format!("the backward pass fails: {e}"));
        }
    }
    Ok(())
}

fn retain() -> Options {
    Options { retain_graph: true, create_graph: false }
}

/// Checks first, second and third derivatives of all outputs together, for cotangents that are not all 1. Of an op that mutates an input, only
/// first ones.
pub fn agrees_with_differences(op: &OpRef, sample: &Sample) -> Result<()> {
    let which = checked(op, sample);
    if which.is_empty() || !is_differentiable(op) {
        return Ok(());
    }
    let call = function(op, sample, &which);
    // Differences are lost in the rounding of narrower outputs, for example those of a conversion.
    let is_narrow = |t: &Tensor| t.dtype().is_differentiable() && !is_wide(t.dtype());
    if call(&inputs(sample, &which))?.iter().any(is_narrow) {
        return Ok(());
    }
    // A documented refusal is not a fault, unless a gradient was requested of an output that cannot have one.
    differences(op, sample, &which, 1)?;
    match has_gradient(op) {
        true => unless_refused(differences(op, sample, &which, 3)),
        false => Ok(()),
    }
}

/// Compares derivatives with differences of the op. If its program detaches values, these are held constant, because the gradient takes them
/// as constants.
fn differences(op: &OpRef, sample: &Sample, which: &[usize], orders: usize) -> Result<()> {
    differences_at(op, sample, which, orders, &inputs(sample, which), &<[Tensor]>::to_vec)
}

/// The same at other tensors, of which `spread` makes the inputs.
fn differences_at(
    op: &OpRef,
    sample: &Sample,
    which: &[usize],
    orders: usize,
    at: &[Tensor],
    spread: &dyn Fn(&[Tensor]) -> Vec<Tensor>,
) -> Result<()> {
    let own = function(op, sample, which);
    let call = |t: &[Tensor]| own(&spread(t));
    let options = GradCheck { orders, ..GradCheck::default() };
    let with = |reference: &Function<'_>| {
        let held = compare(&call, &|t: &[Tensor]| reference(&spread(t)), at, options);
        held.map_err(|e| e.context("with the detached values held constant"))
    };
    let Some((apart, both)) = detached_apart(op, sample)? else {
        let plain = gradcheck(&call, at, options);
        if plain.is_ok() || !matches!(op.body, Body::Tensor(_) | Body::Dynamic(_)) {
            return plain;
        }
        let body = OpRef::Shared(Arc::new(OpDef { backward: Backward::Composite, ..(**op).clone() }));
        return recorded(&body, sample, which)?.map_or(plain, |reference| with(&reference));
    };
    match (with(&function(&apart, &both, which)), &op.backward) {
        // A formula may be the derivative of the whole body.
        (Err(held), Backward::Formula(_)) => gradcheck(&call, at, options).map_err(|_| held),
        (held, _) => held,
    }
}

/// The op of a program whose detached values are computed from the second half of its inputs, and the sample for it. `None` if the program
/// detaches nothing.
fn detached_apart(op: &OpRef, sample: &Sample) -> Result<Option<(OpRef, Sample)>> {
    let apart = op.with_detached_apart(&sample.attrs, |i| sample.inputs[i].is_some())?;
    let inputs = sample.inputs.iter().chain(&sample.inputs).cloned().collect();
    Ok(apart.map(|op| (op, Sample { inputs, attrs: sample.attrs.clone() })))
}

/// A body over whole tensors with its detached values held constant. `None` if it detaches nothing, or is no graph.
fn recorded<'a>(op: &OpRef, sample: &'a Sample, which: &'a [usize]) -> Result<Option<Box<Function<'a>>>> {
    let leaves = sample.map(|i, t| if which.contains(&i) { t.copied()?.with_requires_grad() } else { t.copied() })?;
    let given = |inputs: &[Option<Tensor>]| inputs.iter().flatten().cloned().collect::<Vec<Tensor>>();
    manual_seed(0);
    let apart = DetachedApart::of(&given(&leaves.inputs), || leaves.call(op)).unwrap_or_default();
    let Some(apart) = apart else { return Ok(None) };
    Ok(Some(Box::new(move |tensors: &[Tensor]| {
        let mut inputs = sample.inputs.clone();
        which.iter().zip(tensors).for_each(|(i, t)| inputs[*i] = Some(t.clone()));
        apart.run(&given(&inputs))
    })))
}

/// Parts of the errors for derivatives that do not exist.
const REFUSALS: &[&str] = &["has no gradient:", "has no second derivative:", "not available", TOO_LONG];

fn unless_refused(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(e) if REFUSALS.iter().any(|refusal| e.message().contains(refusal)) => Ok(()),
        other => other,
    }
}

/// Checks first and second derivatives of complex inputs, for an op that accepts them. Complex gradients need conjugation,
/// which a formula that is correct for real numbers may lack.
pub fn agrees_with_complex_differences(op: &OpRef, sample: &Sample) -> Result<()> {
    let which = checked(op, sample);
    if !which.iter().any(|i| sample.inputs[*i].as_ref().is_some_and(|t| t.dtype() == DType::F64)) {
        return Ok(());
    }
    let Some(complex) = complex(op, sample)? else { return Ok(()) };
    if which.is_empty() || !has_gradient(op) {
        return Ok(());
    }
    unless_refused(differences(op, &complex, &which, 2)).map_err(|e| e.context("complex numbers"))
}

/// A sample with complex inputs in place of float64, if the op accepts them.
fn complex(op: &OpRef, sample: &Sample) -> Result<Option<Sample>> {
    let turned = sample.map(|i, t| {
        if t.dtype() != DType::F64 {
            return Ok(t.clone());
        }
        let mut random = Random::new(i as u64);
        let values = numbers(t)?.into_iter().flat_map(|re| [re, random.between(0.2, 1.2)]).collect();
        super::values::tensor_like(&Tensor::empty(t.shape().clone(), DType::C128, t.device())?, values)
    })?;
    // Some dtype rules are known only to the body, so this tries a call.
    let takes = turned.copied()?.call(op).is_ok_and(|outputs| outputs.iter().any(|t| t.dtype().is_differentiable()));
    Ok(takes.then_some(turned))
}

/// Passes the same tensor as two inputs: both gradient contributions must be added.
pub fn one_tensor_twice(op: &OpRef, sample: &Sample) -> Result<()> {
    let which = checked(op, sample);
    // Gradients of one tensor are added by the op `add`, which a program may not link.
    if !has_gradient(op) || names::ADD.get().is_err() {
        return Ok(());
    }
    for (n, i) in which.iter().enumerate() {
        for j in &which[n + 1..] {
            let (Some(a), Some(b)) = (&sample.inputs[*i], &sample.inputs[*j]) else { continue };
            if a.shape() != b.shape() || a.dtype() != b.dtype() {
                continue;
            }
            let pair = [*i, *j];
            // Near a tie of the two inputs, a difference crosses a kink that the derivative does not see.
            differences(op, sample, &pair, 1)?;
            let aliased = sample.map(|k, t| if pair.contains(&k) { a.copied() } else { Ok(t.clone()) })?;
            let twice = |t: &[Tensor]| vec![t[0].clone(), t[0].clone()];
            differences_at(op, &aliased, &pair, 1, &[a.copied()?], &twice).map_err(|e| {
                let (x, y) = (&op.parameter(*i).name, &op.parameter(*j).name);
                e.context(format!("with one tensor for both '{x}' and '{y}'"))
            })?;
        }
    }
    Ok(())
}

/// A gradient must not be NaN where the value is finite, for large inputs and at 0.
pub fn finite_where_the_value_is(op: &OpRef, sample: &Sample) -> Result<()> {
    let which = checked(op, sample);
    if which.is_empty() || !has_gradient(op) {
        return Ok(());
    }
    for extreme in [-1000.0, -50.0, 0.0, 50.0, 1000.0] {
        for only in 0..which.len() {
            let mut leaves = inputs(sample, &which);
            let values = numbers(&leaves[only])?
                .iter()
                .enumerate()
                .map(|(i, v)| if i % 2 == 0 { extreme } else { *v })
                .collect();
            leaves[only] = super::values::tensor_like(&leaves[only], values)?;
            let leaves: Vec<Tensor> =
                leaves.into_iter().map(|t| t.detach().with_requires_grad()).collect::<Result<_>>()?;
            let Ok(outputs) = function(op, sample, &which)(&leaves) else { continue };
            let outputs: Vec<Tensor> = outputs.into_iter().filter(|t| t.requires_grad()).collect();
            let finite =
                outputs.iter().map(numbers).collect::<Result<Vec<_>>>()?.iter().flatten().all(|v| v.is_finite());
            if outputs.is_empty() || !finite {
                continue;
            }
            let ones: Vec<Option<Tensor>> = outputs
                .iter()
                .map(|t| Tensor::ones(t.shape().clone(), t.dtype(), t.device()).map(Some))
                .collect::<Result<_>>()?;
            for (g, i) in grad(&outputs, &leaves, &ones, retain())?.iter().zip(&which) {
                if let Some(g) = g
                    && numbers(g)?.iter().any(|v| v.is_nan())
                {
                    let name = &op.parameter(*i).name;
                    return fail(format!(
                        "the gradient of '{name}' is NaN where the value is finite, with {extreme} in an input; use primitives that are \
                         stable there (sigmoid, softplus, expm1, log1p, where)"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Changes a saved tensor in place. The backward pass must fail, or return the gradient of the original values.
pub fn stale_tensors_are_noticed(op: &OpRef, sample: &Sample) -> Result<()> {
    let which = checked(op, sample);
    if which.is_empty() || !has_gradient(op) {
        return Ok(());
    }
    let run = |spoil: bool| -> Result<Vec<Option<Tensor>>> {
        let leaves: Vec<Tensor> =
            inputs(sample, &which).iter().map(|t| t.copied()?.with_requires_grad()).collect::<Result<_>>()?;
        let outputs: Vec<Tensor> =
            function(op, sample, &which)(&leaves)?.into_iter().filter(|t| t.requires_grad()).collect();
        if outputs.is_empty() {
            return Ok(Vec::new());
        }
        let cotangents: Vec<Option<Tensor>> =
            outputs.iter().enumerate().map(|(k, t)| cotangent(t, k).map(Some)).collect::<Result<_>>()?;
        if spoil {
            for t in &leaves {
                t.copy_from(&super::values::tensor_like(t, numbers(t)?.iter().map(|v| v * 0.5 + 0.3).collect())?)?;
                t.storage().bump();
            }
        }
        grad(&outputs, &leaves, &cotangents, Options::default())
    };
    let before = run(false)?;
    let Ok(after) = run(true) else { return Ok(()) };
    for (a, b) in before.iter().zip(&after) {
        if let (Some(a), Some(b)) = (a, b)
            && !close(a, b, 1e-9)?
        {
            return fail(
                "a saved tensor was changed in place after the forward pass, and the gradient changes without an error"
                    .into(),
            );
        }
    }
    Ok(())
}

/// Runs the forward pass on one thread and the backward pass on another.
pub fn any_thread_will_do(op: &OpRef, sample: &Sample) -> Result<()> {
    let which = checked(op, sample);
    if which.is_empty() || !has_gradient(op) {
        return Ok(());
    }
    let leaves: Vec<Tensor> =
        inputs(sample, &which).into_iter().map(|t| t.detach().with_requires_grad()).collect::<Result<_>>()?;
    let outputs: Vec<Tensor> =
        function(op, sample, &which)(&leaves)?.into_iter().filter(|t| t.requires_grad()).collect();
    if outputs.is_empty() {
        return Ok(());
    }
    let cotangents: Vec<Option<Tensor>> =
        outputs.iter().enumerate().map(|(k, t)| cotangent(t, k).map(Some)).collect::<Result<_>>()?;
    let here = grad(&outputs, &leaves, &cotangents, retain())?;
    let there = std::thread::scope(|s| s.spawn(|| grad(&outputs, &leaves, &cotangents, Options::default())).join())
        .unwrap_or_else(|_| fail("backward panics on another thread".into()))?;
    for (a, b) in here.iter().zip(&there) {
        match (a, b) {
            (Some(a), Some(b)) if close(a, b, 1e-12)? => {}
            (None, None) => {}
            _ => return fail("backward on another thread returns another gradient".into()),
        }
    }
    Ok(())
}

/// Dropping the results must free their memory.
pub fn dropped_results_are_freed(op: &OpRef, sample: &Sample) -> Result<()> {
    let which = checked(op, sample);
    if which.is_empty() || op.inputs.iter().any(|i| i.mutated) {
        return Ok(());
    }
    let leaves: Vec<Tensor> =
        inputs(sample, &which).into_iter().map(|t| t.detach().with_requires_grad()).collect::<Result<_>>()?;
    let call = function(op, sample, &which);
    drop(call(&leaves)?);
    const CALLS: usize = 50;
    let (called, kept) = bytes_kept(|| (0..CALLS).try_for_each(|_| call(&leaves).map(drop)));
    called?;
    if kept >= CALLS as isize {
        fail(format!("{kept} bytes remain allocated after {CALLS} calls whose results were dropped"))
    } else {
        Ok(())
    }
}
