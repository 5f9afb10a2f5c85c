//! Computes an op by its program, with one call of another op for each step: for devices without a kernel for the op.

use std::cell::RefCell;

use smallvec::SmallVec;

use super::arrays;
use super::shapes::{CallShapes, broadcast, expanded};
use crate::autograd::NoGrad;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::call::dtype_rule::DTypes;
use crate::op::call::shape_rule::CoreShapes;
use crate::op::gradient::decomposition;
use crate::op::{Call, Core, OpDef, Role};
use crate::tensor::{Device, Shape, Tensor};

thread_local! {
    /// The ops that are being computed by their programs.
    static RUNNING: RefCell<Vec<*const OpDef>> = const { RefCell::new(Vec::new()) };
}

/// Marks an op as running. An op whose program consists of calls of itself has no parts.
struct Running;

impl Running {
    fn new(op: &OpDef, device: Device, dtypes: &DTypes) -> Result<Running> {
        RUNNING.with_borrow_mut(|running| match running.contains(&std::ptr::from_ref(op)) {
            true => Err(no_kernel(op, device, dtypes)),
            false => {
                running.push(op);
                Ok(Running)
            }
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(Vec::pop);
    }
}

#[cold]
fn no_kernel(op: &OpDef, device: Device, dtypes: &DTypes) -> Error {
    let dtypes: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
    let of = if dtypes.is_empty() { String::new() } else { format!(" for {}", dtypes.join(" with ")) };
    Error::not_implemented(format!(
        "op '{}' has no kernel{of} on device '{device}'; copy its inputs with to('cpu'), or add a kernel",
        op.name
    ))
}

/// Computes all outputs.
pub fn run(
    call: &Call<'_>,
    dtypes: &DTypes,
    device: Device,
    shapes: Option<(&CallShapes, &CoreShapes)>,
) -> Result<SmallVec<[Option<Tensor>; 1]>> {
    let op = call.op;
    let program = op.program(call.attrs, |i| call.inputs[i].is_some())?;
    let program = program.ok_or_else(|| no_kernel(op, device, dtypes))?;
    let _running = Running::new(op, device, dtypes)?;
    let _quiet = NoGrad::new();
    let computed: DTypes = dtypes.iter().map(|d| d.compute()).collect();
    let mut inputs = Vec::new();
    for ((i, cast), given) in arrays::in_dtypes(op, call.inputs, &computed)?.into_iter().enumerate().zip(call.inputs) {
        let t = cast.or_else(|| given.cloned());
        inputs.push(match (shapes, t) {
            (Some((shapes, rule)), Some(t)) => Some(shapes.kernel_input(rule, i, &t)?),
            (_, t) => t,
        });
    }
    let dtype = computed.first().copied().unwrap_or(DType::F32);
    let results = decomposition::run(op, &program, &inputs, call.attrs, (dtype, device))?;
    let shape = if shapes.is_none() { broadcast(op, call.inputs)? } else { Shape::default() };
    let mut outputs = SmallVec::new();
    for (k, (output, t)) in op.outputs.iter().zip(results).enumerate() {
        let t = match shapes {
            // The program has a last axis of size 1 for a number of the row.
            Some((shapes, rule)) if output.core != Core::Slice && t.ndim() > shapes.batch.len() => {
                shapes.call_output(rule, k, &t.squeeze_view(-1)?)?
            }
            Some((shapes, rule)) => shapes.call_output(rule, k, &t)?,
            None => expanded(t, &shape),
        };
        outputs.push(Some(match output.role {
            Role::Mutates(i) => match call.inputs[i as usize] {
                Some(given) => arrays::store(&t, given)?,
                None => t,
            },
            // The result may be an input, or expanded.
            _ => t.cast(op.stored_dtype_of(output, dtypes, call.attrs)?)?,
        }));
    }
    Ok(outputs)
}
