//! The layer that computes the outputs.

use smallvec::SmallVec;

use super::Produced;
use super::check::{Checked, Flat};
use super::{parts, tune};
use crate::attr::Attr;
use crate::autograd::is_grad_enabled;
use crate::backend::cpu::{cells, elements};
use crate::backend::without_values::WithoutValues;
use crate::backend::{self, CallShapes, SelectedKernel, Wanted, composite};
use crate::error::{Error, Result, counted};
use crate::lazy;
use crate::op::call::dtype_rule::DTypes;
use crate::op::call::shape_rule::Bindings;
use crate::op::{Backward, Body, Call, DTypeRule, Kernels, OpDef, OpRef, ShapeRule};
use crate::precision::stored_dtype;
use crate::tensor::{Device, DeviceKind, Tensor};

/// Computes the wanted outputs.
pub fn compute(
    op: &OpRef,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    checked: &Checked<'_>,
    wanted: Wanted<'_>,
) -> Result<Produced> {
    let (dtypes, device) = (&checked.dtypes, checked.device);
    let is_lazy = device == Device::Cpu && lazy::is_on() && !wanted.has_places();
    let postpone = || {
        let infer = |metas: &[Option<&Tensor>]| {
            let outputs = compute(op, metas, attrs, &checked.without_values(), wanted);
            // The shapes of results of a body may depend on elements.
            if op.body.is_over_tensors() { Ok(outputs.ok()) } else { outputs.map(Some) }
        };
        lazy::call::postpone(op, inputs, attrs, checked, infer)
    };
    if !op.body.is_over_tensors() {
        if is_lazy
            && has_kernel(op, dtypes)
            && let Some(outputs) = postpone()?
        {
            return Ok(outputs);
        }
        inputs.iter().flatten().try_for_each(|t| lazy::ready(t))?;
    }
    let tuned = tune::complete(op, inputs, attrs, checked)?;
    let attrs = tuned.as_ref().map_or(attrs, |completed| &completed.attrs);
    let cast = convert(op, inputs, dtypes)?;
    let converted: Flat<'_> =
        inputs.iter().enumerate().map(|(i, t)| cast.get(i).and_then(Option::as_ref).or(*t)).collect();
    if matches!(op.body, Body::Cell(_))
        && device == Device::Cpu
        && let Some(outputs) = cells::kept::run(op, &converted, attrs, dtypes, wanted)
    {
        return outputs;
    }
    let shapes = match &op.shape {
        ShapeRule::Core(rule) => Some((CallShapes::new(op, rule, &converted, attrs)?, rule)),
        _ => {
            op.check_predicates(&Bindings::default(), attrs)?;
            None
        }
    };
    let shapes = shapes.as_ref().map(|(shapes, rule)| (shapes, *rule));
    let call = Call { op, inputs: &converted, attrs };
    match (&op.body, shapes) {
        (Body::Tensor(_) | Body::Dynamic(_), _) => {
            if let Some(selected) = whole_kernel(&call, device, dtypes) {
                if is_lazy && let Some(outputs) = postpone()? {
                    return Ok(outputs);
                }
                inputs.iter().flatten().try_for_each(|t| lazy::ready(t))?;
                return backend::run_arrays(&selected, &call, dtypes, device, shapes, wanted);
            }
            let outputs = match is_lazy {
                true => match lazy::call::run_body(op, can_postpone(&call), || run_body(&call))? {
                    Some(outputs) => outputs,
                    None => match postpone()? {
                        Some(outputs) => return Ok(outputs),
                        None => lazy::call::at_once(|| run_body(&call))?,
                    },
                },
                false => run_body(&call)?,
            };
            check_promises(op, outputs, attrs, dtypes, shapes.map(|(shapes, _)| shapes))
        }
        (Body::Element(_), _) if is_looped(op, device) => elements::run(op, &converted, attrs, dtypes, device, wanted),
        (Body::Cell(_), Some((shapes, rule))) if is_looped(op, device) => {
            if op.combine.is_some()
                && device == Device::Cpu
                && let Some(out) = parts::run(op, converted[0], attrs, checked, shapes)?
            {
                return Ok([Some(out)].into_iter().collect());
            }
            cells::run(op, shapes, rule, &converted, attrs, dtypes, device, wanted)
        }
        (Body::Cell(_), None) => Err(Error::runtime(format!("op '{}' has a cell body but no shape rule", op.name))),
        _ if device == Device::Meta => backend::infer_arrays(&call, dtypes, shapes),
        _ => match SelectedKernel::new(op, device.kind(), dtypes) {
            Some(selected) => backend::run_arrays(&selected, &call, dtypes, device, shapes, wanted),
            None => match backend::programs::run(&call, dtypes, device, shapes, wanted)? {
                Some(outputs) => Ok(outputs),
                None => backend::decompose(&call, dtypes, device, shapes),
            },
        },
    }
}

/// Runs a body over whole tensors.
fn run_body(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let is_meta = call.inputs.iter().flatten().any(|t| t.device() == Device::Meta);
    let _mixes = is_meta.then(WithoutValues::new);
    match &call.op.body {
        Body::Tensor(body) => composite::rounded_once(call, body),
        // Python code sees the dtypes of its results, and may read values.
        Body::Dynamic(body) if body.is_interpreted => (body.run)(call),
        Body::Dynamic(body) => composite::rounded_once(call, &*body.run),
        _ => Ok(Vec::new()),
    }
}

/// Whether a call of a body over whole tensors can be postponed as a whole: its gradient is not that of its parts, and
/// no frame of another language is in the way.
fn can_postpone(call: &Call<'_>) -> bool {
    let is_recorded = || is_grad_enabled() && call.inputs.iter().flatten().any(|t| t.requires_grad());
    matches!(call.op.body, Body::Tensor(_)) && !(matches!(call.op.backward, Backward::Composite) && is_recorded())
}

/// Whether the CPU has a kernel for a loop or a function over arrays.
fn has_kernel(op: &OpDef, dtypes: &DTypes) -> bool {
    let computed: DTypes = dtypes.iter().map(|d| d.compute()).collect();
    match &op.body {
        Body::Element(_) => elements::Loop::of(op, &computed).is_some(),
        Body::Cell(_) => op.kernels_on(DeviceKind::Cpu).any(|kernels| kernels.has_cell(&computed)),
        _ => SelectedKernel::new(op, DeviceKind::Cpu, dtypes).is_some(),
    }
}

/// Whether loops of the CPU compute the op on the device. They infer on [`Device::Meta`].
fn is_looped(op: &OpDef, device: Device) -> bool {
    let has_loops = || op.kernels_on(DeviceKind::Cpu).any(|kernels| !matches!(kernels, Kernels::Arrays(_)));
    device == Device::Meta || device == Device::Cpu && has_loops()
}

/// The kernel of a composite op, if there is one for the device. If the gradient is that of the parts, they are needed.
fn whole_kernel<'a>(call: &Call<'a>, device: Device, dtypes: &DTypes) -> Option<SelectedKernel<'a>> {
    let is_recorded = || is_grad_enabled() && call.inputs.iter().flatten().any(|t| t.requires_grad());
    let is_needed = matches!(call.op.backward, Backward::Composite) && is_recorded();
    if call.op.kernels.is_empty() || is_needed { None } else { SelectedKernel::new(call.op, device.kind(), dtypes) }
}

/// Converts inputs to the dtypes that the body computes in. A composite op promotes them itself, by the ops that it calls; only
/// inputs of a dtype that it does not take are converted.
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
            (Some(t), Some(target)) if op.body.is_loop() && t.dtype() == target.compute() => None,
            // The rows of a reduction are converted when they are packed.
            (Some(t), Some(_)) if op.combine.is_some() && is_looped(op, t.device()) => None,
            (Some(t), Some(target)) if t.dtype() != target => Some(t.cast(target)?),
            _ => None,
        });
    }
    Ok(cast)
}

/// Checks the outputs of a composite op against its `shape` and `dtype` clauses.
fn check_promises(
    op: &OpDef,
    outputs: Vec<Tensor>,
    attrs: &[Attr],
    dtypes: &DTypes,
    shapes: Option<&CallShapes>,
) -> Result<Produced> {
    if !op.gives_list() && outputs.len() != op.outputs.len() {
        return Err(Error::runtime(format!(
            "op '{}' declares {}, but its body returned {}; correct the definition",
            op.name,
            counted(op.outputs.len(), "output"),
            outputs.len()
        )));
    }
    for (k, (output, t)) in op.outputs.iter().zip(&outputs).enumerate() {
        let wrong = |promised: String, got: String| {
            Error::runtime(format!(
                "op '{}' declares {promised} for '{}', but its body returned {got}; correct the definition",
                op.name, output.name
            ))
        };
        if let Some(shape) = shapes.and_then(|shapes| shapes.outputs.get(k))
            && t.shape() != shape
        {
            return Err(wrong(format!("shape {shape}"), t.shape().to_string()));
        }
        if output.dtype != DTypeRule::Any {
            let dtype = op.output_dtype_of(output.dtype, dtypes, attrs)?;
            // Within a composite op, halves are kept in float32.
            if ![dtype, stored_dtype(dtype)].contains(&t.dtype()) {
                return Err(wrong(dtype.to_string(), t.dtype().to_string()));
            }
        }
    }
    Ok(outputs.into_iter().map(Some).collect())
}
