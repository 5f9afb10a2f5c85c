//! Calls of kernels over whole arrays, on any device.

use smallvec::SmallVec;

use super::shapes::{CallShapes, broadcast, expanded};
use crate::autograd::NoGrad;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::call::dtype_rule::DTypes;
use crate::op::call::shape_rule::CoreShapes;
use crate::op::{ArrayKernel, Body, Call, DTypeRule, KernelCall, OpDef, Role};
use crate::tensor::allocator::allocator;
use crate::tensor::{Device, DeviceKind, Shape, Tensor};

/// A kernel, and the dtypes that it computes in.
pub struct Found<'a> {
    kernel: &'a ArrayKernel,
    dtypes: DTypes,
}

impl<'a> Found<'a> {
    /// The kernel of an op. A device without a kernel for a half float computes in `float32`.
    pub fn new(op: &'a OpDef, kind: DeviceKind, dtypes: &DTypes) -> Option<Found<'a>> {
        let computed = dtypes.iter().map(|d| d.compute()).collect();
        [dtypes.clone(), computed].into_iter().find_map(|dtypes| {
            let kernel = op.kernels_on(kind).find_map(|kernels| kernels.array(&dtypes))?;
            Some(Found { kernel, dtypes })
        })
    }
}

/// Computes the outputs whose bit in `wanted` is set.
pub fn run(
    found: &Found<'_>,
    call: &Call<'_>,
    dtypes: &DTypes,
    device: Device,
    plan: Option<(&CallShapes, &CoreShapes)>,
    wanted: u64,
) -> Result<SmallVec<[Option<Tensor>; 1]>> {
    let op = call.op;
    let _quiet = NoGrad::new();
    let mut inputs: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    for (cast, given) in in_dtypes(op, call.inputs, &found.dtypes)?.into_iter().zip(call.inputs) {
        inputs.push(cast.or_else(|| given.cloned()));
    }
    let outputs = outputs(call, &found.dtypes, plan)?;
    // The functions of a plugin take the arrays as they are, and write to all outputs.
    let is_plain = matches!(op.body, Body::Arrays(_));
    let plan = plan.filter(|_| !is_plain);
    let shape = outputs.first().filter(|_| matches!(op.body, Body::Element(_))).map(|(shape, _)| shape.clone());
    for (i, slot) in inputs.iter_mut().enumerate() {
        *slot = match (slot.take(), plan, &shape) {
            (Some(t), Some((plan, rule)), _) => Some(plan.enter(rule, i, &t)?),
            (Some(t), None, Some(shape)) => Some(expanded(t, shape)),
            (t, ..) => t,
        };
    }
    let mut results: SmallVec<[Option<Tensor>; 2]> = SmallVec::new();
    for (k, (output, (shape, dtype))) in op.outputs.iter().zip(outputs).enumerate() {
        results.push(match output.role {
            _ if wanted & (1 << k) == 0 && !is_plain => None,
            Role::Mutates(i) => inputs[i as usize].clone(),
            _ => {
                let shape = plan.map_or(shape, |(plan, rule)| plan.kernel_shape(rule, k));
                Some(Tensor::zeros(shape, dtype, device)?)
            }
        });
    }
    let stream = if device == Device::Cpu { std::ptr::null_mut() } else { allocator(device)?.stream() };
    let given: SmallVec<[Option<&Tensor>; 4]> = inputs.iter().map(Option::as_ref).collect();
    let written: SmallVec<[Option<&Tensor>; 2]> = results.iter().map(Option::as_ref).collect();
    (found.kernel)(&KernelCall { op, inputs: &given, outputs: &written, attrs: call.attrs, stream })?;
    let mut outputs = SmallVec::new();
    for (k, (output, t)) in op.outputs.iter().zip(&results).enumerate() {
        let Some(t) = t else {
            outputs.push(None);
            continue;
        };
        outputs.push(Some(match (output.role, output.dtype, plan) {
            (Role::Mutates(i), ..) => match call.inputs[i as usize] {
                Some(target) => store(t, target)?,
                None => t.detach(),
            },
            (_, rule, plan) => {
                let t = plan.map_or(Ok(t.clone()), |(plan, clause)| plan.leave(clause, k, t))?;
                match rule {
                    DTypeRule::Generic(g) if t.dtype() != dtypes[g as usize] => t.cast(dtypes[g as usize])?,
                    _ => t.contiguous()?,
                }
            }
        }));
    }
    Ok(outputs)
}

/// The outputs of a call on the device without values.
pub fn infer(
    call: &Call<'_>,
    dtypes: &DTypes,
    plan: Option<(&CallShapes, &CoreShapes)>,
) -> Result<SmallVec<[Option<Tensor>; 1]>> {
    let outputs = outputs(call, dtypes, plan)?;
    outputs.into_iter().map(|(shape, dtype)| Tensor::empty(shape, dtype, Device::Meta).map(Some)).collect()
}

/// The inputs that must be converted for a kernel of these dtypes.
pub fn in_dtypes(op: &OpDef, inputs: &[Option<&Tensor>], dtypes: &[DType]) -> Result<SmallVec<[Option<Tensor>; 4]>> {
    let convert = |(i, t): (usize, &Option<&Tensor>)| match (t, op.parameter(i).dtype) {
        (Some(t), DTypeRule::Generic(g)) if t.dtype() != dtypes[g as usize] => t.cast(dtypes[g as usize]).map(Some),
        _ => Ok(None),
    };
    inputs.iter().enumerate().map(convert).collect()
}

/// Writes a result to the input that an op changes in place.
pub fn store(result: &Tensor, target: &Tensor) -> Result<Tensor> {
    if !result.is_same_window(target) {
        target.copy_from(result)?;
    }
    Ok(target.detach())
}

/// The shapes and dtypes of the outputs.
fn outputs(call: &Call<'_>, dtypes: &DTypes, plan: Option<(&CallShapes, &CoreShapes)>) -> Result<Vec<(Shape, DType)>> {
    let op = call.op;
    let shapes: Vec<Shape> = match (&op.body, plan) {
        (Body::Arrays(body), _) if body.infers() => return body.infer(call),
        (_, Some((plan, _))) => plan.outputs.to_vec(),
        (Body::Element(_), None) => vec![broadcast(op, call.inputs)?; op.outputs.len()],
        (_, None) => return from_meta(call),
    };
    let dtype = |k: usize| op.output_dtype_of(op.outputs[k].dtype, dtypes, call.attrs);
    shapes.into_iter().enumerate().map(|(k, shape)| Ok((shape, dtype(k)?))).collect()
}

/// The shapes and dtypes that the body of a composite op returns for inputs without values.
fn from_meta(call: &Call<'_>) -> Result<Vec<(Shape, DType)>> {
    let meta = |t: &Option<&Tensor>| match t {
        Some(t) => Tensor::empty(t.shape().clone(), t.dtype(), Device::Meta).map(Some),
        None => Ok(None),
    };
    let metas: Vec<Option<Tensor>> = call.inputs.iter().map(meta).collect::<Result<_>>()?;
    let inputs: Vec<Option<&Tensor>> = metas.iter().map(Option::as_ref).collect();
    let call = Call { inputs: &inputs, ..*call };
    let outputs = match &call.op.body {
        Body::Tensor(body) => body(&call)?,
        Body::Dynamic(body) => (body.run)(&call)?,
        _ => Vec::new(),
    };
    Ok(outputs.iter().map(|t| (t.shape().clone(), t.dtype())).collect())
}
