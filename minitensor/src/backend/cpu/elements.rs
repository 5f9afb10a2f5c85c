//! Calls of element bodies: broadcasts the inputs, allocates the outputs, and runs the loop.

use std::borrow::Cow;

use smallvec::SmallVec;

use minitensor_kernels::program::Program;

use super::programs;
use super::strided::{self, ElementLoop, GRAIN};
use crate::attr::Attr;
use crate::backend::precision;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::dtype_rule::DTypes;
use crate::op::{Arity, Body, CellBody, ElementBody, ElementKernel, Kernel, OpDef, Role};
use crate::tensor::{Device, Shape, Tensor};

/// The shape that all inputs broadcast to.
pub fn broadcast(op: &OpDef, inputs: &[Option<&Tensor>]) -> Result<Shape> {
    let mut shape: Option<Shape> = None;
    for (i, t) in inputs.iter().enumerate().filter_map(|(i, t)| t.map(|t| (i, t))) {
        match &shape {
            None => shape = Some(t.shape().clone()),
            Some(s) if s == t.shape() => {}
            Some(s) => {
                shape = Some(s.broadcast(t.shape()).ok_or_else(|| {
                    Error::value(format!(
                        "op '{}': '{}' of shape {} doesn't broadcast with shape {s} of the inputs before it; sizes are \
                         aligned at the end and must be equal or 1",
                        op.name,
                        op.parameter(i).name,
                        t.shape()
                    ))
                })?)
            }
        }
    }
    let shape = shape.unwrap_or_default();
    for (i, t) in inputs.iter().enumerate().filter(|(i, _)| op.parameter(*i).mutated) {
        if let Some(t) = t
            && t.shape() != &shape
        {
            return Err(Error::value(format!(
                "op '{}' changes '{}' in place: its shape {} can't hold the result's shape {shape}",
                op.name,
                op.parameter(i).name,
                t.shape()
            )));
        }
    }
    Ok(shape)
}

/// Computes the outputs whose bit in `wanted` is set; the others are `None`.
pub fn run(
    op: &OpDef,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    dtypes: &DTypes,
    device: Device,
    wanted: u64,
) -> Result<SmallVec<[Option<Tensor>; 1]>> {
    let shape = broadcast(op, inputs)?;
    let mut outputs: SmallVec<[Option<Tensor>; 1]> = SmallVec::new();
    let mut output_dtypes: SmallVec<[DType; 2]> = SmallVec::new();
    for (k, output) in op.outputs.iter().enumerate() {
        let dtype = precision::output_dtype(op, output, dtypes, attrs)?;
        output_dtypes.push(dtype);
        outputs.push(match output.role {
            _ if wanted & (1 << k) == 0 => None,
            Role::Mutates(i) => inputs[i as usize].map(Tensor::detach),
            _ => Some(Tensor::empty(shape.clone(), dtype, device)?),
        });
    }
    if device == Device::Meta {
        return Ok(outputs);
    }
    let wanted: SmallVec<[Option<&Tensor>; 2]> = outputs.iter().map(Option::as_ref).collect();
    let go = |kernel: ElementLoop<'_>| strided::run(&kernel, &shape, inputs, &wanted, &output_dtypes);
    match &op.body {
        Body::Element(body) => {
            let run = find(op, body, dtypes)?;
            let attrs = with_presence(op, inputs, attrs);
            // SAFETY: the loop was chosen for these dtypes.
            go(ElementLoop { run: &|n, ins, outs| unsafe { run.run(&attrs, n, ins, outs) }, grain: GRAIN })?;
        }
        Body::Program(plan) => {
            let dtype = dtypes.first().copied().unwrap_or(DType::F32);
            go(ElementLoop { run: &programs::kernel(op, plan, dtype, attrs), grain: programs::grain(plan) })?;
        }
        _ => return Err(Error::runtime(format!("op '{}' doesn't go element by element", op.name))),
    }
    drop(wanted);
    Ok(outputs)
}

/// The loop for these dtypes.
fn find(op: &OpDef, body: &ElementBody, dtypes: &DTypes) -> Result<Kernel<ElementKernel>> {
    let computed: SmallVec<[DType; 2]> = dtypes.iter().map(|d| d.compute()).collect();
    body.kernels.find(&computed).ok_or_else(|| {
        let names: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
        Error::type_(format!("op '{}' has no kernel for {}", op.name, names.join(" with ")))
    })
}

impl OpDef {
    /// The body of an element or row op as a program, for these static attributes and the optional inputs that are given. The
    /// `f64` attributes are uniforms. `None` if the op has no such body.
    pub fn program(&self, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Result<Option<Program>> {
        let write = match &self.body {
            Body::Program(plan) => return Ok(Some(plan.program().clone())),
            Body::Element(ElementBody { program: Some(write), .. })
            | Body::Cell(CellBody { program: Some(write), .. }) => write,
            _ => return Ok(None),
        };
        let optional = (0..self.inputs.len()).filter(|i| self.inputs[*i].arity == Arity::Optional);
        let all: Vec<Attr> = attrs.iter().cloned().chain(optional.map(|i| Attr::Bool(is_given(i)))).collect();
        write.call(self, &all).map(Some)
    }
}

/// The op's attributes, then whether each optional input is given, for the kernel.
fn with_presence<'a>(op: &OpDef, inputs: &[Option<&Tensor>], attrs: &'a [Attr]) -> Cow<'a, [Attr]> {
    if op.inputs.iter().all(|i| i.arity != Arity::Optional) {
        return Cow::Borrowed(attrs);
    }
    let optional = op.inputs.iter().zip(inputs).filter(|(i, _)| i.arity == Arity::Optional);
    attrs.iter().cloned().chain(optional.map(|(_, t)| Attr::Bool(t.is_some()))).collect()
}
