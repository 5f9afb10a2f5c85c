//! The one entry of all calls. A call passes through three layers, which do not know each other:
//!
//! | layer | does |
//! |---|---|
//! | [`capture`] | shows the call to observers, such as a profiler, if there are any |
//! | [`autograd`] | records the call if an input requires a gradient |
//! | [`backend`] | computes the outputs on the device of the inputs |
//!
//! Before the last two, [`check`] resolves dtypes and the device, and rejects what the op does not take. The most common
//! call, an op over few elements of contiguous tensors, takes a short path through these two layers ([`fast`]).

mod autograd;
mod backend;
pub(crate) mod capture;
mod check;
mod fast;
pub(crate) mod parts;
mod record;
mod tune;

pub(crate) use autograd::named;
pub(crate) use check::Checked;

use smallvec::SmallVec;

use crate::attr::Attr;
use crate::autograd::NoGrad;
use crate::backend::Wanted;
use crate::error::{Error, Result};
use crate::lazy;
use crate::op::{Arg, Backward, OpRef, Outputs, Role};
use crate::random::Forbid;
use crate::tensor::{Shape, Tensor};

/// All outputs of a call, in the definition's order.
pub(crate) type Produced = SmallVec<[Option<Tensor>; 1]>;

/// Calls an op. `attrs` are complete and checked, as [`bind`](crate::op::call::bind) makes them.
pub fn dispatch(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr]) -> Result<Outputs> {
    dispatch_wanted(op, args, attrs, Wanted::ALL).map(|outputs| returned(op, outputs))
}

/// Calls an op that records nothing. Results are in the memory of the given tensors, for each output in order, where the kernel
/// can write there; otherwise in memory of their own.
pub fn dispatch_at(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr], places: &[Tensor]) -> Result<Outputs> {
    let _mode = NoGrad::new();
    dispatch_wanted(op, args, attrs, Wanted::at(places)).map(|outputs| returned(op, outputs))
}

/// The outputs that the caller gets: neither saved ones nor changed inputs.
fn returned(op: &OpRef, outputs: Produced) -> Outputs {
    Outputs(outputs.into_iter().enumerate().filter(|(k, _)| is_returned(op, *k)).filter_map(|(_, t)| t).collect())
}

fn is_returned(op: &OpRef, output: usize) -> bool {
    // An op of variadic outputs declares one for all.
    op.outputs.get(output).is_none_or(|o| o.role == Role::Returned)
}

/// Calls an op that returns one tensor.
#[inline]
pub fn dispatch_one(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr]) -> Result<Tensor> {
    let outputs = if capture::is_active() {
        dispatch(op, args, attrs)?
    } else {
        let mut output = [None];
        if let Some(done) = fast::call(op, args, attrs, Wanted::ALL, &mut output) {
            let [output] = output;
            return done.map(|()| output.expect("the call has filled it in"));
        }
        returned(op, layers(op, args, attrs, Wanted::ALL)?)
    };
    match outputs.0.len() {
        1 => Ok(outputs.single()),
        n => Err(Error::type_(format!("op '{}' returns {n} tensors, expected one", op.name))),
    }
}

/// Calls an op, computing only the wanted outputs; all of them come back, in the definition's order.
pub(crate) fn dispatch_wanted(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr], wanted: Wanted<'_>) -> Result<Produced> {
    if let Some(copies) = check::copies(op, args)? {
        let own = args.iter().zip(&copies).map(|(arg, copy)| copy.as_ref().map_or(*arg, Arg::Tensor));
        return dispatch_wanted(op, &own.collect::<SmallVec<[_; 4]>>(), attrs, wanted);
    }
    let is_active = capture::is_active();
    let proceed = || {
        let count = op.outputs.len();
        if wanted.has_all(count) && count <= fast::FEW && !(is_active && lazy::is_on()) {
            let mut outputs: Produced = SmallVec::from_elem(None, count);
            if let Some(done) = fast::call(op, args, attrs, wanted, &mut outputs) {
                return done.map(|()| outputs);
            }
        }
        layers(op, args, attrs, wanted)
    };
    if is_active { capture::call(op, args, attrs, proceed) } else { proceed() }
}

/// Records a call without computing it, if its gradient reads no outputs other than the `known` results. The other outputs have
/// their shapes and dtypes, but all their values are zero. `None` if the call must be computed.
pub(crate) fn record_only(
    op: &OpRef,
    args: &[Arg<'_>],
    attrs: &[Attr],
    known: &[Option<Tensor>],
) -> Result<Option<Vec<Tensor>>> {
    let checked = Checked::new(op, args, attrs)?;
    let inputs = checked.inputs();
    if matches!(op.backward, Backward::Composite) || op.body.is_interpreted() {
        return Ok(None);
    }
    let known = |k: usize| known.get(k).and_then(Option::as_ref).filter(|_| is_returned(op, k));
    let Some(recording) = record::prepare(op, &inputs, attrs)? else { return Ok(None) };
    if recording.outputs_read(op).any(|k| known(k).is_none()) {
        return Ok(None);
    }
    let metas: Vec<Option<Tensor>> = inputs.iter().map(|t| t.map(Tensor::meta).transpose()).collect::<Result<_>>()?;
    let metas: Vec<Arg<'_>> = metas.iter().map(|t| t.as_ref().map_or(Arg::None, Arg::Tensor)).collect();
    let inferred = {
        let _quiet = NoGrad::new();
        let _keys = Forbid::lifted();
        layers(op, &metas, attrs, Wanted::ALL)
    };
    // The body may read values.
    let Ok(mut outputs) = inferred else { return Ok(None) };
    for (k, t) in outputs.iter_mut().enumerate() {
        let Some(t) = t else { continue };
        if let Some(known) = known(k) {
            if known.shape() != t.shape() || known.dtype() != t.dtype() {
                let (name, expected) = (&op.outputs[k].name, format!("{} {}", t.dtype(), t.shape()));
                let got = format!("{} {}", known.dtype(), known.shape());
                return Err(Error::value(format!("op '{}': result '{name}' is {expected}, got {got}", op.name)));
            }
            *t = known.detach();
            continue;
        }
        let zero = Tensor::full(Shape::default(), 0.0.into(), t.dtype(), checked.device)?;
        *t = zero.broadcast_view(t.shape());
    }
    recording.record(op, &inputs, attrs, &mut outputs);
    Ok(Some(returned(op, outputs).into_vec()))
}

/// The layers below [`capture`].
fn layers(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr], wanted: Wanted<'_>) -> Result<Produced> {
    let checked = Checked::new(op, args, attrs)?;
    let inputs = checked.inputs();
    op.write_program(&checked.dtypes, attrs, |i| inputs[i].is_some())?;
    autograd::call(op, &inputs, attrs, &checked, wanted)
}
