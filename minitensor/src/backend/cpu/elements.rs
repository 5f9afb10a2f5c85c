//! Calls of element bodies: broadcasts the inputs, allocates the outputs, and runs the loop.

use std::borrow::Cow;

use minitensor_kernels::program::Storage;
use smallvec::SmallVec;

use super::programs;
use super::strided::{self, ElementLoop, GRAIN};
use crate::attr::Attr;
use crate::backend::{Wanted, shapes::broadcast};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::call::dtype_rule::DTypes;
use crate::op::element_program::ElementProgram;
use crate::op::gradient;
use crate::op::variants::Variants;
use crate::op::{Arity, ElementKernel, Kernel, Kernels, OpDef, Role};
use crate::tensor::{Device, DeviceKind, Shape, Tensor};

/// Computes the wanted outputs; the others are `None`.
pub fn run(
    op: &OpDef,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    dtypes: &DTypes,
    device: Device,
    wanted: Wanted<'_>,
) -> Result<SmallVec<[Option<Tensor>; 1]>> {
    let shape = broadcast(op, inputs)?;
    run_by(op, inputs, attrs, dtypes, device, wanted, &shape, |kernel, outputs, output_dtypes| {
        strided::run(kernel, &shape, inputs, outputs, output_dtypes)
    })
}

/// Computes the wanted outputs, of this shape, by a function of the loop, the outputs, and the dtypes of all outputs.
#[allow(clippy::too_many_arguments)]
pub fn run_by(
    op: &OpDef,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    dtypes: &DTypes,
    device: Device,
    wanted: Wanted<'_>,
    shape: &Shape,
    run: impl FnOnce(&ElementLoop<'_>, &[Option<&Tensor>], &[DType]) -> Result<()>,
) -> Result<SmallVec<[Option<Tensor>; 1]>> {
    let mut outputs: SmallVec<[Option<Tensor>; 1]> = SmallVec::new();
    let mut output_dtypes: SmallVec<[DType; 2]> = SmallVec::new();
    for (k, output) in op.outputs.iter().enumerate() {
        let dtype = op.stored_dtype_of(output, dtypes, attrs)?;
        output_dtypes.push(dtype);
        outputs.push(match output.role {
            _ if !wanted.has(k) => None,
            Role::Mutates(i) => inputs[i as usize].map(Tensor::detach),
            _ => wanted.output(k, shape, dtype, device)?,
        });
    }
    if device == Device::Meta {
        // Without elements, a loop does not read attributes.
        if let [dtype] = dtypes[..]
            && shape.numel() > 0
        {
            programs::check_uniforms(op, dtype, attrs)?;
        }
        return Ok(outputs);
    }
    let wanted: SmallVec<[Option<&Tensor>; 2]> = outputs.iter().map(Option::as_ref).collect();
    let run_loop = |kernel: ElementLoop<'_>| run(&kernel, &wanted, &output_dtypes);
    let tuned = op.grain(attrs);
    let is_given = |i: usize| inputs[i].is_some();
    let found = find(op, dtypes)?.or_machine_code(op, dtypes, attrs, is_given, shape.numel());
    let is_compiled = matches!(found, Loop::Kernel(_));
    let stored = |storage: &[Storage]| {
        let [dtype] = dtypes[..] else { return None };
        // A compiled loop of integers was chosen because it is faster.
        if is_compiled && dtype.is_integer() {
            return None;
        }
        // A program has one type of number.
        let mut all = inputs.iter().flatten().map(|t| t.dtype()).chain(output_dtypes.iter().copied());
        if !all.all(|other| other == DType::Bool || other.compute() == dtype.compute()) {
            return None;
        }
        let programs = op.kernels_on(DeviceKind::Cpu).find_map(Kernels::elements)?;
        let program = programs.at(&[dtype.compute()], op, attrs, is_given).ok()?;
        let plan = program.stored(op, storage, || gradient::program_of_reals(op, attrs, is_given))?;
        let is_ready = programs::has_machine_code(&plan, dtype.compute());
        if is_ready { programs::kernel(op, plan, dtype.compute(), attrs).ok() } else { None }
    };
    match found {
        Loop::Kernel(kernel) => {
            let grain = tuned.unwrap_or(GRAIN);
            let attrs = with_presence(op, inputs, attrs);
            // SAFETY: the loop was chosen for these dtypes.
            run_loop(ElementLoop {
                run: &|n, ins: &[_], outs: &[_]| unsafe { kernel.run(&attrs, n, ins, outs) },
                of_integers: None,
                stored: &stored,
                reads_late: false,
                grain,
            })?;
        }
        Loop::Program(programs) => {
            let dtype = dtypes.first().copied().unwrap_or(DType::F32);
            let program = programs.at(dtypes, op, attrs, is_given)?;
            let grain = tuned.unwrap_or_else(|| programs::grain(&program.plan));
            let is_of_floats = program.parts.is_none() && dtype.is_differentiable();
            let of_integers = Some(dtype.compute()).filter(|_| is_of_floats);
            let run = match &program.parts {
                Some(parts) => programs::kernel_of_parts(op, parts, dtypes, attrs)?,
                None => programs::kernel(op, &program.plan, dtype, attrs)?,
            };
            run_loop(ElementLoop { run: &*run, of_integers, stored: &stored, reads_late: true, grain })?;
        }
    }
    drop(wanted);
    Ok(outputs)
}

/// A loop over elements.
pub enum Loop<'a> {
    /// A compiled loop.
    Kernel(Kernel<'a, ElementKernel>),
    /// Programs.
    Program(&'a Variants<ElementProgram>),
}

impl<'a> Loop<'a> {
    /// The loop of an op for these compute dtypes.
    #[inline]
    pub fn of(op: &'a OpDef, dtypes: &[DType]) -> Option<Loop<'a>> {
        op.kernels_on(DeviceKind::Cpu).find_map(|kernels| match kernels {
            Kernels::Programs(programs) => Some(Loop::Program(programs)),
            _ => kernels.element(dtypes).map(Loop::Kernel),
        })
    }

    /// This loop, or the machine code of the op's program if that is faster for `n` elements. Compiled loops of integers use only
    /// instructions that every CPU has.
    #[inline]
    pub fn or_machine_code(
        self,
        op: &'a OpDef,
        dtypes: &[DType],
        attrs: &[Attr],
        is_given: impl Fn(usize) -> bool,
        n: usize,
    ) -> Loop<'a> {
        /// The fewest elements for which the choice takes less time than it saves.
        const FEWEST: usize = 1024;
        let faster = |dtype: DType| {
            let programs = op.kernels_on(DeviceKind::Cpu).find_map(Kernels::elements)?;
            let program = programs.at(&[dtype], op, attrs, is_given).ok()?;
            // A program writes an output in the memory of an input through a buffer.
            let is_in_place = op.outputs.iter().any(|output| matches!(output.role, Role::Mutates(_)));
            let is_faster = program.parts.is_none() && programs::outruns_loop(&program.plan, dtype, is_in_place);
            is_faster.then_some(Loop::Program(programs))
        };
        match (&self, dtypes) {
            (Loop::Kernel(_), [dtype]) if n >= FEWEST && dtype.is_integer() => faster(*dtype).unwrap_or(self),
            _ => self,
        }
    }
}

fn find<'a>(op: &'a OpDef, dtypes: &DTypes) -> Result<Loop<'a>> {
    let computed: SmallVec<[DType; 2]> = dtypes.iter().map(|d| d.compute()).collect();
    Loop::of(op, &computed).ok_or_else(|| {
        let names: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
        Error::type_(format!("op '{}' has no kernel for {}", op.name, names.join(" with ")))
    })
}

/// The op's attributes, then whether each optional input is given, for the kernel.
fn with_presence<'a>(op: &OpDef, inputs: &[Option<&Tensor>], attrs: &'a [Attr]) -> Cow<'a, [Attr]> {
    if op.inputs.iter().all(|i| i.arity != Arity::Optional) {
        return Cow::Borrowed(attrs);
    }
    let optional = op.inputs.iter().zip(inputs).filter(|(i, _)| i.arity == Arity::Optional);
    attrs.iter().cloned().chain(optional.map(|(_, t)| Attr::Bool(t.is_some()))).collect()
}
