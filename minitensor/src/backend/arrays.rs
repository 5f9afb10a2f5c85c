//! Calls of kernels over whole arrays, on any device.

use smallvec::SmallVec;

use super::shapes::{CallShapes, broadcast, expanded};
use super::{Wanted, composite};
use crate::autograd::NoGrad;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::call::dtype_rule::DTypes;
use crate::op::call::shape_rule::CoreShapes;
use crate::op::{ArrayKernel, Body, Call, DTypeRule, KernelCall, OpDef, Output, Role};
use crate::precision::{is_wide, stored_dtype};
use crate::tensor::allocator::allocator;
use crate::tensor::{Device, DeviceKind, Shape, Tensor};

/// A kernel, and the dtypes that it takes and gives.
pub struct SelectedKernel<'a> {
    kernel: &'a ArrayKernel,
    dtypes: DTypes,
    gives: DTypes,
}

impl<'a> SelectedKernel<'a> {
    /// The kernel of an op. Half floats are computed in `float32` by a device without a kernel for them, and within a composite
    /// op.
    pub fn new(op: &'a OpDef, kind: DeviceKind, dtypes: &DTypes) -> Option<SelectedKernel<'a>> {
        let compute: DTypes = dtypes.iter().map(|d| d.compute()).collect();
        let mut candidates = [dtypes.clone(), compute.clone()];
        if is_wide() {
            if let Some(kernel) = op.kernels_on(kind).find_map(|kernels| kernels.half_array(dtypes)) {
                return Some(SelectedKernel { kernel, dtypes: dtypes.clone(), gives: compute });
            }
            candidates.reverse();
        }
        candidates.into_iter().find_map(|dtypes| {
            let kernel = op.kernels_on(kind).find_map(|kernels| kernels.array(&dtypes))?;
            Some(SelectedKernel { kernel, gives: dtypes.clone(), dtypes })
        })
    }
}

/// Computes the wanted outputs.
pub fn run(
    selected: &SelectedKernel<'_>,
    call: &Call<'_>,
    dtypes: &DTypes,
    device: Device,
    shapes: Option<(&CallShapes, &CoreShapes)>,
    wanted: Wanted<'_>,
) -> Result<SmallVec<[Option<Tensor>; 1]>> {
    let op = call.op;
    let _quiet = NoGrad::new();
    let mut inputs: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    for (cast, given) in in_dtypes(op, call.inputs, &selected.dtypes)?.into_iter().zip(call.inputs) {
        inputs.push(cast.or_else(|| given.cloned()));
    }
    let outputs = outputs(call, &selected.gives, shapes)?;
    // The functions of a plugin take the arrays as they are, and write to all outputs.
    let is_plain = matches!(op.body, Body::Arrays(_));
    let shapes = shapes.filter(|_| !is_plain);
    let shape = outputs.first().filter(|_| matches!(op.body, Body::Element(_))).map(|(shape, _)| shape.clone());
    for (i, slot) in inputs.iter_mut().enumerate() {
        *slot = match (slot.take(), shapes, &shape) {
            (Some(t), Some((shapes, rule)), _) => Some(shapes.kernel_input(rule, i, &t)?),
            (Some(t), None, Some(shape)) => Some(expanded(t, shape)),
            (t, ..) => t,
        };
    }
    let mut results: SmallVec<[Option<Tensor>; 2]> = SmallVec::new();
    for (k, (output, (shape, dtype))) in op.outputs.iter().zip(outputs).enumerate() {
        results.push(match output.role {
            _ if !wanted.has(k) && !is_plain => None,
            // Cells are read while others are written.
            Role::Mutates(i) if shapes.is_some() => inputs[i as usize].as_ref().map(Tensor::copied).transpose()?,
            Role::Mutates(i) => inputs[i as usize].clone(),
            _ => {
                let shape = shapes.map_or(shape, |(shapes, rule)| shapes.kernel_shape(rule, k));
                Some(Tensor::zeros(shape, dtype, device)?)
            }
        });
    }
    let stream = if device == Device::Cpu { std::ptr::null_mut() } else { allocator(device)?.stream() };
    let given: SmallVec<[Option<&Tensor>; 4]> = inputs.iter().map(Option::as_ref).collect();
    let written: SmallVec<[Option<&Tensor>; 2]> = results.iter().map(Option::as_ref).collect();
    (selected.kernel)(&KernelCall { op, inputs: &given, outputs: &written, attrs: call.attrs, stream })?;
    let mut outputs = SmallVec::new();
    for (k, (output, t)) in op.outputs.iter().zip(&results).enumerate() {
        let Some(t) = t else {
            outputs.push(None);
            continue;
        };
        let t = shapes.map_or(Ok(t.clone()), |(shapes, clause)| shapes.call_output(clause, k, t))?;
        outputs.push(Some(match (output.role, output.dtype) {
            (Role::Mutates(i), _) => match call.inputs[i as usize] {
                Some(target) => store(&t, target)?,
                None => t.detach(),
            },
            (_, DTypeRule::Generic(g)) => match stored_dtype(dtypes[g as usize]) {
                dtype if t.dtype() != dtype => t.cast(dtype)?,
                _ => t.contiguous()?,
            },
            _ => t.contiguous()?,
        }));
    }
    Ok(outputs)
}

/// The outputs of a call on the device without values.
pub fn infer(
    call: &Call<'_>,
    dtypes: &DTypes,
    shapes: Option<(&CallShapes, &CoreShapes)>,
) -> Result<SmallVec<[Option<Tensor>; 1]>> {
    let outputs = outputs(call, dtypes, shapes)?;
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
fn outputs(
    call: &Call<'_>,
    dtypes: &DTypes,
    shapes: Option<(&CallShapes, &CoreShapes)>,
) -> Result<Vec<(Shape, DType)>> {
    let op = call.op;
    let shapes: Vec<Shape> = match (&op.body, shapes) {
        (Body::Arrays(body), _) if body.infers() => return body.infer(call),
        (_, Some((shapes, _))) => shapes.outputs.to_vec(),
        (Body::Element(_), None) => vec![broadcast(op, call.inputs)?; op.outputs.len()],
        (Body::Tensor(body), None) => return composite::metas_of(call, body),
        (Body::Dynamic(body), None) => return composite::metas_of(call, &*body.run),
        (_, None) => Vec::new(),
    };
    let dtype = |output: &Output| op.output_dtype_of(output.dtype, dtypes, call.attrs);
    op.outputs.iter().zip(shapes).map(|(output, shape)| Ok((shape, dtype(output)?))).collect()
}
