//! What [`dispatch`](crate::dispatch) asks before it computes a call.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use smallvec::SmallVec;

use super::access::compute;
use super::mode::{self, Access, Ended};
use super::origin::{Entered, Origin};
use super::pending::{self, Argument, Postponed};
use super::{failure, is_on};
use crate::attr::Attr;
use crate::autograd::NoGrad;
use crate::dispatch::{Checked, Produced};
use crate::error::Result;
use crate::op::by_name::names;
use crate::op::{Arg, Body, DTypeRule, OpRef, Role};
use crate::tensor::Tensor;

/// Postpones a call, and returns its outputs. `infer` returns the outputs for inputs without values. `None` if they are not
/// known without elements, or if the call must be computed at once for another reason.
///
/// # Errors
/// If the call is not valid.
pub fn postpone(
    op: &OpRef,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    checked: &Checked<'_>,
    infer: impl FnOnce(&[Option<&Tensor>]) -> Result<Option<Produced>>,
) -> Result<Option<Produced>> {
    let metas = inputs.iter().map(|t| t.map(Tensor::meta).transpose()).collect::<Result<Vec<_>>>()?;
    let (inferred, has_effect) = mode::with_effects(|| {
        let _quiet = NoGrad::new();
        infer(&metas.iter().map(Option::as_ref).collect::<Vec<_>>())
    });
    let Some(outputs) = inferred?.filter(|outputs| !has_effect && are_apart(op, outputs, &metas)) else {
        return Ok(None);
    };
    let mut args = SmallVec::new();
    for (i, (arg, t)) in checked.args.iter().zip(inputs).enumerate() {
        args.push(match (arg, t) {
            (Arg::Number(value), Some(t)) => {
                let (rule, dtype) = (op.parameter(i).dtype, t.dtype());
                let mut others = inputs.iter().enumerate().filter(|(k, _)| op.parameter(*k).dtype == rule);
                // A tensor does not change the dtypes of the call then.
                let is_like_others = others.all(|(_, other)| other.is_none_or(|other| other.dtype() == dtype));
                let can_replace = is_like_others && matches!(rule, DTypeRule::Generic(_));
                Argument::Number(*value, can_replace.then_some(dtype))
            }
            (_, Some(t)) if t.storage().is_shared_outside() => {
                // A copy has another layout, and a later change would not be seen outside.
                if op.parameter(i).mutated || !t.is_contiguous() {
                    return Ok(None);
                }
                Argument::Copied(copied(t)?)
            }
            (_, Some(t)) => {
                if let Some(error) = t.storage().is_postponed().then(|| failure::of(t.storage())).flatten() {
                    return Err(error);
                }
                Argument::Given(t)
            }
            (_, None) => Argument::Absent,
        });
        if op.parameter(i).mutated {
            mode::note_effect();
        }
    }
    if pending::is_full() {
        compute()?;
    }
    // Element ops have no errors that depend on elements, or few.
    let origin = (!matches!(op.body, Body::Element(_))).then(Origin::of_call);
    Ok(pending::postpone(Postponed { op, args, attrs, outputs, origin }))
}

/// Whether each result has memory of its own, unlike a view.
fn are_apart(op: &OpRef, outputs: &Produced, inputs: &[Option<Tensor>]) -> bool {
    let is_changed = |k: usize| matches!(op.outputs.get(k).map(|output| output.role), Some(Role::Mutates(_)));
    let results = outputs.iter().enumerate().filter(|(k, _)| !is_changed(*k)).filter_map(|(_, t)| t.as_ref());
    let results: SmallVec<[&Tensor; 4]> = results.collect();
    let others = |k: usize| results[..k].iter().copied().chain(inputs.iter().flatten());
    results.iter().enumerate().all(|(k, t)| !others(k).any(|other| t.shares_storage(other)))
}

fn copied(t: &Tensor) -> Result<Tensor> {
    let _paused = mode::paused(Access::Computes);
    t.copied()
}

/// Runs the body of an op over whole tensors. The calls that it makes are postponed. `None` if it accesses elements of
/// postponed memory itself, so that the call must be postponed as a whole. If that is not possible, such an access computes.
pub fn run_body<T>(op: &OpRef, can_postpone: bool, run: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    let access = match () {
        () if !can_postpone => Access::Computes,
        () if [names::CLONE.name(), names::ASTYPE.name()].contains(&op.name.as_ref()) => Access::EndsCopy,
        () => Access::Ends,
    };
    let _restore = (mode::with_access(access), Entered::new(op));
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map(Some),
        Err(payload) if payload.is::<Ended>() => Ok(None),
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs code whose calls are computed at once.
pub fn at_once<T>(run: impl FnOnce() -> T) -> T {
    let _paused = mode::paused(Access::Computes);
    run()
}

/// Whether copies and conversions of a tensor must be calls of ops, so that they are postponed.
#[inline]
pub fn copies_by_calls(t: &Tensor) -> bool {
    t.storage().is_postponed() && is_on() && mode::access() != Access::EndsCopy
}
