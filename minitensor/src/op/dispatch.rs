//! The one way a call takes: dtypes, shapes, memory, kernel, history.

use minitensor_kernels::Const;
use smallvec::{SmallVec, smallvec};

use super::call::{Arg, Call, Outputs};
use super::def::{Arity, Backward, Body, DTypeRule, OpDef, OpRef, Role, ShapeRule};
use super::dtype_rule::DTypes;
use super::shape_rule::Bindings;
use super::{cell, element, precision, record, registry, straight};
use crate::attr::Attr;
use crate::autograd::{NoGrad, is_grad_enabled};
use crate::error::{Error, Result, counted};
use crate::stop::ended;
use crate::tensor::{Device, Tensor};

type Flat<'a> = SmallVec<[Option<&'a Tensor>; 4]>;
type Produced = SmallVec<[Option<Tensor>; 1]>;

/// Calls an op. `attrs` are complete and checked, as [`bind`](super::bind) makes them.
pub fn dispatch(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr]) -> Result<Outputs> {
    let outputs = dispatch_wanted(op, args, attrs, u64::MAX)?;
    // Neither saved outputs nor those that are changed inputs; an op of variadic outputs declares one for all.
    let returned = |k: usize| op.outputs.get(k).is_none_or(|o| o.role == Role::Returned);
    Ok(Outputs(outputs.into_iter().enumerate().filter(|(k, _)| returned(*k)).filter_map(|(_, t)| t).collect()))
}

/// Calls an op that gives one tensor.
#[inline]
pub fn dispatch_one(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr]) -> Result<Tensor> {
    let mut output = [None];
    if let Some(done) = straight::call(op, args, attrs, &mut output) {
        let [output] = output;
        return done.map(|()| output.expect("the call has filled it in"));
    }
    let outputs = dispatch(op, args, attrs)?;
    match outputs.0.len() {
        1 => Ok(outputs.single()),
        n => Err(Error::type_(format!("op '{}' gives {n} tensors where one is expected", op.name))),
    }
}

/// Calls an op, computing only the outputs whose bit is set; all of them come back, in the definition's order.
pub(crate) fn dispatch_wanted(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr], wanted: u64) -> Result<Produced> {
    let count = op.outputs.len();
    if wanted.trailing_ones() as usize >= count && count <= straight::FEW {
        let mut outputs: Produced = SmallVec::from_elem(None, count);
        if let Some(done) = straight::call(op, args, attrs, &mut outputs) {
            return done.map(|()| outputs);
        }
    }
    go(op, args, attrs, wanted)
}

/// The way of any call.
/// An error as the op tells it. What an op of a namespace says, of which an op without one is made, its caller need not know.
#[cold]
fn told_by(op: &OpRef, error: Error) -> Error {
    let part = error.message().strip_prefix("op '").and_then(|rest| rest.split_once('\'')).map(|(name, _)| name.to_owned());
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

fn go(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr], wanted: u64) -> Result<Produced> {
    check_count(op, args.len())?;
    let dtypes = op.resolve_dtypes(args)?;
    let device = device(op, args)?;
    let owned = materialize(op, args, &dtypes, device)?;
    let inputs: Flat<'_> = args
        .iter()
        .zip(&owned)
        .map(|(arg, own)| match arg {
            Arg::Tensor(t) => Some(*t),
            _ => own.as_ref(),
        })
        .collect();
    check_writes(op, &inputs)?;
    let traced = matches!(op.backward, Backward::Traced);
    let recording = if is_grad_enabled() && !traced { record::prepare(op, &inputs, attrs)? } else { None };
    let mut outputs = {
        let _quiet = (!traced && matches!(op.body, Body::Tensor(_) | Body::Arrays(_) | Body::Dynamic(_))).then(NoGrad::new);
        ended(|| compute(op, &inputs, attrs, &dtypes, device, wanted))
            .inspect_err(|_| count_changes(op, &inputs))
            .flatten()
            .map_err(|e| told_by(op, e))?
    };
    count_changes(op, &inputs);
    if recording.is_none() && matches!(op.body, Body::Tensor(_) | Body::Dynamic(_)) {
        // A result is a tensor of its own, also where nothing was to be done.
        for t in outputs.iter_mut().flatten().filter(|t| !t.requires_grad()) {
            if inputs.iter().flatten().any(|input| input.is(t)) {
                *t = t.detach();
            }
        }
    }
    if let Some(recording) = recording {
        recording.record(op, &inputs, attrs, &mut outputs);
    } else if traced && is_grad_enabled() {
        admit_lost_history(op, &inputs, attrs, &mut outputs)?;
    } else if !traced {
        for t in outputs.iter_mut().flatten().filter(|t| t.grad_meta().is_some()) {
            *t = t.detach();
        }
    }
    if !is_loop(op) {
        note_views(traced, &inputs, &mut outputs);
    }
    Ok(outputs)
}

/// Counts the changes made in place. An op that ended half way may have made some of them.
fn count_changes(op: &OpDef, inputs: &[Option<&Tensor>]) {
    for (_, t) in inputs.iter().enumerate().filter(|(i, _)| op.parameter(*i).mutated) {
        t.inspect(|t| t.storage().bump());
    }
}

/// An output in the memory of an input is a view of it, also where nothing is recorded: one of them may be changed by a
/// recorded call later. What an op within a traced body made a view of an input is one already. A view of a tensor that only
/// the body has seen is none, unless another output is one, too.
fn note_views(traced: bool, inputs: &[Option<&Tensor>], outputs: &mut Produced) {
    for k in 0..outputs.len() {
        let Some(t) = outputs[k].take_if(|t| t.dtype().is_differentiable()) else { continue };
        let whole = inputs.iter().flatten().find(|input| input.shares_storage(&t));
        let others = outputs.iter().flatten().any(|other| other.shares_storage(&t));
        outputs[k] = Some(match (whole, t.origin()) {
            (Some(whole), _) if whole.is(&t) => t,
            (Some(_), Some(_)) if traced => t,
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

/// A body over whole tensors may compute an output outside of recorded ops. It then gets a history that ends here, so that
/// differentiating it raises instead of stopping silently.
fn admit_lost_history(op: &OpRef, inputs: &[Option<&Tensor>], attrs: &[Attr], outputs: &mut Produced) -> Result<()> {
    let lost = |t: &Option<Tensor>| t.as_ref().is_some_and(|t| t.dtype().is_differentiable() && !t.requires_grad());
    if !outputs.iter().any(lost) {
        return Ok(());
    }
    let Some(recording) = record::prepare(op, inputs, attrs)? else { return Ok(()) };
    let mut ends: Produced = outputs.iter().map(|t| if lost(t) { t.clone() } else { None }).collect();
    recording.record(op, inputs, attrs, &mut ends);
    for (output, end) in outputs.iter_mut().zip(ends).filter(|(_, end)| end.is_some()) {
        *output = end;
    }
    Ok(())
}

fn check_count(op: &OpDef, got: usize) -> Result<()> {
    let variadic = op.inputs.last().is_some_and(|i| i.arity == Arity::Variadic);
    let expected = op.inputs.len();
    if got == expected || (variadic && got + 1 >= expected) {
        return Ok(());
    }
    let at_least = if variadic { "at least " } else { "" };
    let expected = counted(if variadic { expected - 1 } else { expected }, "tensor");
    let names: Vec<_> = op.inputs.iter().map(|i| i.name.as_ref()).collect();
    Err(Error::type_(format!(
        "op '{}' takes {at_least}{expected} ({}), got {got}",
        op.name,
        names.join(", ")
    )))
}

fn device(op: &OpDef, args: &[Arg<'_>]) -> Result<Device> {
    let mut device = None;
    for (i, arg) in args.iter().enumerate() {
        match arg {
            Arg::Tensor(t) if *device.get_or_insert(t.device()) != t.device() => {
                return Err(Error::runtime(format!(
                    "op '{}': '{}' is on {}, the inputs before it on {}; bring them to one device with to()",
                    op.name,
                    op.parameter(i).name,
                    t.device(),
                    device.unwrap_or_default()
                )));
            }
            Arg::None if op.parameter(i).arity == Arity::One => return Err(op.missing(&op.parameter(i).name)),
            _ => {}
        }
    }
    Ok(device.unwrap_or_default())
}

/// Whether a loop computes it, which converts what it is given.
fn is_loop(op: &OpDef) -> bool {
    matches!(op.body, Body::Element(_) | Body::Program(_) | Body::Cell(_))
}

/// Numbers as tensors, and tensors of another dtype than the op computes in converted.
fn materialize(op: &OpDef, args: &[Arg<'_>], dtypes: &DTypes, device: Device) -> Result<SmallVec<[Option<Tensor>; 4]>> {
    let mut owned = smallvec![None; args.len()];
    for (i, arg) in args.iter().enumerate() {
        if let Arg::Number(n) = arg {
            let dtype = match op.parameter(i).dtype {
                // So that a number isn't rounded to 16 bits before.
                DTypeRule::Generic(g) if is_loop(op) => dtypes[g as usize].compute(),
                DTypeRule::Generic(g) => dtypes[g as usize],
                DTypeRule::Fixed(d) => d,
                _ => match n {
                    Const::Bool(_) => crate::DType::Bool,
                    Const::Int(_) => crate::DType::I64,
                    Const::Float(_) => crate::DType::F32,
                },
            };
            owned[i] = Some(
                Tensor::from_number(*n, dtype, device)
                    .map_err(|e| e.context(format!("op '{}', input '{}'", op.name, op.parameter(i).name)))?,
            );
        }
    }
    Ok(owned)
}

/// Nothing is written where something else is read or written, except that an input may be the very tensor changed.
fn check_writes(op: &OpDef, inputs: &[Option<&Tensor>]) -> Result<()> {
    if op.inputs.iter().all(|i| !i.mutated) {
        return Ok(());
    }
    for (i, t) in inputs.iter().enumerate().filter_map(|(i, t)| t.filter(|_| op.parameter(i).mutated).map(|t| (i, t))) {
        let name = &op.parameter(i).name;
        if !t.storage().is_writable() {
            return Err(Error::value(format!(
                "op '{}' changes '{name}' in place, but its memory is read-only; copy it first",
                op.name
            )));
        }
        if t.overlaps_itself() {
            return Err(Error::value(format!(
                "op '{}' changes '{name}' in place, but several of its elements share memory (it was expanded); copy it first",
                op.name
            )));
        }
        for (j, other) in inputs.iter().enumerate().filter_map(|(j, o)| o.map(|o| (j, o))) {
            let clash = j != i && t.may_overlap(other) && (op.parameter(j).mutated || !t.is_same_window(other));
            if clash {
                return Err(Error::value(format!(
                    "op '{}' changes '{name}' in place while '{}' shares memory with it; clone() one of them",
                    op.name,
                    op.parameter(j).name
                )));
            }
        }
    }
    Ok(())
}

fn compute(
    op: &OpRef,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    dtypes: &DTypes,
    device: Device,
    wanted: u64,
) -> Result<Produced> {
    let cast = convert(op, inputs, dtypes)?;
    let converted: Flat<'_> =
        inputs.iter().enumerate().map(|(i, t)| cast.get(i).and_then(Option::as_ref).or(*t)).collect();
    let plan = match &op.shape {
        ShapeRule::Core(rule) => Some((cell::Plan::new(op, rule, &converted, attrs)?, rule)),
        _ => {
            op.check_predicates(&Bindings::default(), attrs)?;
            None
        }
    };
    match (&op.body, plan) {
        (Body::Element(_) | Body::Program(_), _) => element::run(op, &converted, attrs, dtypes, device, wanted),
        (Body::Cell(body), Some((plan, rule))) => {
            cell::run(op, body, &plan, rule, &converted, attrs, dtypes, device, wanted)
        }
        (Body::Cell(_), None) => Err(Error::runtime(format!("op '{}' has a cell body but no shape rule", op.name))),
        (Body::Tensor(body), plan) => {
            let outputs = precision::rounded_once(&Call { op, inputs: &converted, attrs }, body)?;
            check_promises(op, outputs, attrs, dtypes, plan.map(|p| p.0))
        }
        (Body::Arrays(body), plan) => {
            let plan = plan.map(|p| p.0);
            let call = Call { op, inputs: &converted, attrs };
            check_promises(op, body.arrays(&call, dtypes, plan.as_ref(), device)?, attrs, dtypes, plan)
        }
        (Body::Dynamic(body), plan) => {
            let call = Call { op, inputs: &converted, attrs };
            // Python code sees the dtypes of what it computes, and may look at values.
            let outputs = match body.is_interpreted {
                true => (body.run)(&call)?,
                false => precision::rounded_once(&call, &*body.run)?,
            };
            check_promises(op, outputs, attrs, dtypes, plan.map(|p| p.0))
        }
    }
}

/// Inputs in the dtypes that the body computes in. A body over whole tensors promotes them itself, by the ops it calls; it
/// gets other tensors only for those of a dtype that it doesn't take.
fn convert(op: &OpDef, inputs: &[Option<&Tensor>], dtypes: &DTypes) -> Result<SmallVec<[Option<Tensor>; 4]>> {
    let mut cast: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    for (i, t) in inputs.iter().enumerate() {
        let is_whole = matches!(op.body, Body::Tensor(_) | Body::Dynamic(_));
        let target = match (op.parameter(i).dtype, t) {
            (DTypeRule::Generic(g), Some(t)) if is_whole && op.generics[g as usize].dtypes.contains(t.dtype()) => None,
            (DTypeRule::Generic(g), _) => Some(dtypes[g as usize]),
            _ => None,
        };
        cast.push(match (t, target) {
            (Some(t), Some(target)) if is_loop(op) && t.dtype() == target.compute() => None,
            (Some(t), Some(target)) if t.dtype() != target => Some(t.cast(target)?),
            _ => None,
        });
    }
    Ok(cast)
}

/// A body over whole tensors gives what its `shape` and `dtype` clauses, if it has them, promise.
fn check_promises(
    op: &OpDef,
    outputs: Vec<Tensor>,
    attrs: &[Attr],
    dtypes: &DTypes,
    plan: Option<cell::Plan>,
) -> Result<Produced> {
    if !op.gives_list() && outputs.len() != op.outputs.len() {
        return Err(Error::runtime(format!(
            "op '{}' declares {} but its body gives {}: the definition is wrong",
            op.name,
            counted(op.outputs.len(), "output"),
            outputs.len()
        )));
    }
    for (k, (output, t)) in op.outputs.iter().zip(&outputs).enumerate() {
        let wrong = |promised: String, got: String| {
            Error::runtime(format!(
                "op '{}' declares {promised} for '{}' but its body gives {got}: the definition is wrong",
                op.name, output.name
            ))
        };
        if let Some(shape) = plan.as_ref().and_then(|p| p.outputs.get(k))
            && t.shape() != shape
        {
            return Err(wrong(format!("shape {shape}"), t.shape().to_string()));
        }
        if output.dtype != DTypeRule::Any {
            let dtype = op.output_dtype_of(output.dtype, dtypes, attrs)?;
            if t.dtype() != dtype {
                return Err(wrong(dtype.to_string(), t.dtype().to_string()));
            }
        }
    }
    Ok(outputs.into_iter().map(Some).collect())
}
