//! The layer that records calls for the gradient.

use super::backend;
use super::check::Checked;
use super::{Produced, record};
use crate::attr::Attr;
use crate::autograd::{NoGrad, is_grad_enabled};
use crate::backend::Wanted;
use crate::error::{Error, Result};
use crate::graph::record::apart;
use crate::op::{Backward, Body, Call, DynamicFn, OpDef, OpRef, registry};
use crate::stop::ended;
use crate::tensor::Tensor;

/// Computes the outputs and attaches their history.
pub fn call(
    op: &OpRef,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    checked: &Checked<'_>,
    wanted: Wanted<'_>,
) -> Result<Produced> {
    let is_composite = matches!(op.backward, Backward::Composite);
    let recording = if is_grad_enabled() && !is_composite { record::prepare(op, inputs, attrs)? } else { None };
    let mut outputs = {
        let _quiet = (!is_composite && matches!(op.body, Body::Tensor(_) | Body::Arrays(_) | Body::Dynamic(_)))
            .then(NoGrad::new);
        ended(|| backend::compute(op, inputs, attrs, checked, wanted))
            .inspect_err(|_| count_changes(op, inputs))
            .flatten()
            .map_err(|e| named(op, e))?
    };
    count_changes(op, inputs);
    if recording.is_none() && matches!(op.body, Body::Tensor(_) | Body::Dynamic(_)) {
        // A result is a new tensor, even if it has the values and the memory of an input.
        for t in outputs.iter_mut().flatten().filter(|t| !t.requires_grad()) {
            if inputs.iter().flatten().any(|input| input.is(t)) {
                *t = t.detach();
            }
        }
    }
    if let Some(recording) = recording {
        recording.record(op, inputs, attrs, &mut outputs);
    } else if is_composite && is_grad_enabled() {
        admit_lost_history(op, inputs, attrs, &mut outputs)?;
    } else if !is_composite {
        for t in outputs.iter_mut().flatten().filter(|t| t.grad_meta().is_some()) {
            *t = t.detach();
        }
    }
    if !op.body.is_loop() {
        note_views(is_composite, inputs, &mut outputs);
    }
    Ok(outputs)
}

/// The error with the name of the op that was called. An op without a namespace may be made of ops of a namespace in the same
/// package: their names mean nothing to the caller.
#[cold]
pub fn named(op: &OpRef, error: Error) -> Error {
    let part =
        error.message().strip_prefix("op '").and_then(|rest| rest.split_once('\'')).map(|(name, _)| name.to_owned());
    let package = |op: &OpRef| op.location.file.split_once("src").map(|(package, _)| package.to_owned());
    let is_part = |part: &str| {
        let found = if part.contains("::") && !op.name.contains("::") { registry::get(part).ok() } else { None };
        found.is_some_and(|part| package(&part).is_some() && package(&part) == package(op))
    };
    match part.filter(|part| is_part(part)) {
        Some(part) => error.renamed(&part, &op.name),
        None => error.context(format!("op '{}'", op.name)),
    }
}

/// Increments the versions of inputs that the op changes in place. An op that failed may have changed a part of them.
fn count_changes(op: &OpDef, inputs: &[Option<&Tensor>]) {
    for (_, t) in inputs.iter().enumerate().filter(|(i, _)| op.parameter(*i).mutated) {
        t.inspect(|t| t.storage().bump());
    }
}

/// Marks outputs that share memory with an input as views of it, even if nothing is recorded: a later recorded call may change
/// one of them. A composite op may have marked them already. A view of a tensor that exists only inside of the body is not
/// marked, unless another output shares its memory.
fn note_views(is_composite: bool, inputs: &[Option<&Tensor>], outputs: &mut Produced) {
    for k in 0..outputs.len() {
        let Some(t) = outputs[k].take_if(|t| t.dtype().is_differentiable()) else { continue };
        let whole = inputs.iter().flatten().find(|input| input.shares_storage(&t));
        let others = outputs.iter().flatten().any(|other| other.shares_storage(&t));
        outputs[k] = Some(match (whole, t.origin()) {
            (Some(whole), _) if whole.is(&t) => t,
            (Some(_), Some(_)) if is_composite => t,
            (Some(whole), _) => t.into_view_of(Some(whole), !is_grad_enabled()),
            (None, Some(origin)) if others => {
                let whole = origin.whole.clone();
                t.into_view_of(Some(&whole), !is_grad_enabled())
            }
            (None, Some(_)) => t.into_view_of(None, false),
            (None, None) => t,
        });
    }
}

/// A composite op may compute an output outside of recorded ops. Such an output gets a history that ends here: differentiating
/// it is an error, not a silent zero. An output of recorded ops that just does not depend on an input with a gradient has none.
fn admit_lost_history(op: &OpRef, inputs: &[Option<&Tensor>], attrs: &[Attr], outputs: &mut Produced) -> Result<()> {
    let lost = |t: &Option<Tensor>| t.as_ref().is_some_and(|t| t.dtype().is_differentiable() && !t.requires_grad());
    if !outputs.iter().any(lost) {
        return Ok(());
    }
    let Some(recording) = record::prepare(op, inputs, attrs)? else { return Ok(()) };
    let recorded = recorded_outputs(op, inputs, attrs).unwrap_or_default();
    let is_recorded = |k: usize| recorded.get(k).is_some_and(|recorded| *recorded);
    let mut ends: Produced =
        outputs.iter().enumerate().map(|(k, t)| if lost(t) && !is_recorded(k) { t.clone() } else { None }).collect();
    if ends.iter().all(Option::is_none) {
        return Ok(());
    }
    recording.record(op, inputs, attrs, &mut ends);
    for (output, end) in outputs.iter_mut().zip(ends).filter(|(_, end)| end.is_some()) {
        *output = end;
    }
    Ok(())
}

/// For each output, whether recorded ops compute it: whether it has a history if all inputs require gradients. `None` if the body
/// does not run without values.
#[cold]
fn recorded_outputs(op: &OpRef, inputs: &[Option<&Tensor>], attrs: &[Attr]) -> Option<Vec<bool>> {
    let body: &DynamicFn = match &op.body {
        Body::Tensor(body) => body,
        Body::Dynamic(body) if !body.is_interpreted => &*body.run,
        _ => return None,
    };
    let meta = |t: &Tensor| {
        let meta = t.meta()?;
        if t.dtype().is_differentiable() { meta.with_requires_grad() } else { Ok(meta) }
    };
    let metas: Vec<Option<Tensor>> = inputs.iter().map(|t| t.map(meta).transpose()).collect::<Result<_>>().ok()?;
    let metas: Vec<Option<&Tensor>> = metas.iter().map(Option::as_ref).collect();
    let outputs = apart(|| ended(|| body(&Call { op, inputs: &metas, attrs })).flatten().ok())?;
    Some(outputs.iter().map(Tensor::requires_grad).collect())
}
