//! The short path of the most common call: an element op over contiguous tensors of one shape and dtype, and plain
//! numbers beside them, few enough for one thread. It does what the layers of [`dispatch`](super::dispatch) do for them,
//! without the room for everything else.

use minitensor_kernels::Const;

use super::record;
use crate::attr::Attr;
use crate::autograd::is_grad_enabled;
use crate::backend::Wanted;
use crate::backend::cpu::{elements::Loop, programs, strided::GRAIN};
use crate::dtype::{DType, Kind};
use crate::error::Result;
use crate::graph::record as graph;
use crate::op::call::shape_rule::Bindings;
use crate::op::element_program::ElementProgram;
use crate::op::variants::Prepared;
use crate::op::{Arg, Arity, Body, DTypeRule, ElementKernel, Kernel, OpRef, Role};
use crate::tensor::{Device, Tensor};

/// Calls of more inputs or outputs take the long path.
pub const FEW: usize = 4;

/// The size of a buffer that is filled with a plain number, so that the loop reads it like a tensor.
const SPREAD: usize = 512;
type Spread = [u128; SPREAD / 16];

/// The loop of a call.
enum Found<'a> {
    Kernel(Kernel<'a, ElementKernel>),
    Program(&'a ElementProgram),
}

/// Fills in the outputs of such a call. `None` for any other call, including one that fails: the long path reports why.
pub fn call(
    op: &OpRef,
    args: &[Arg<'_>],
    attrs: &[Attr],
    wanted: Wanted<'_>,
    outputs: &mut [Option<Tensor>],
) -> Option<Result<()>> {
    if !matches!(op.body, Body::Element(_)) || op.attrs.iter().any(|a| a.kind.is_tuned()) {
        return None;
    }
    let [generic] = op.generics.as_ref() else { return None };
    let first = args.iter().find_map(|a| if let Arg::Tensor(t) = a { Some(*t) } else { None })?;
    let (dtype, n) = (first.dtype(), first.numel());
    let fits =
        args.len() == op.inputs.len() && args.len() <= FEW && op.outputs.len() == outputs.len() && n > 0 && n <= GRAIN;
    if !fits || dtype.compute() != dtype || !generic.dtypes.contains(dtype) || first.device() != Device::Cpu {
        return None;
    }
    let mut number: Option<(usize, Const)> = None;
    let (mut inputs, mut ins) = ([None; FEW], [std::ptr::null(); FEW]);
    for (i, (arg, input)) in args.iter().zip(op.inputs.iter()).enumerate() {
        if input.mutated || input.arity != Arity::One || input.dtype != DTypeRule::Generic(0) {
            return None;
        }
        match arg {
            Arg::Tensor(t) => {
                let alike = std::ptr::eq(*t, first)
                    || t.dtype() == dtype && t.shape() == first.shape() && t.device() == Device::Cpu;
                if !alike || !t.is_contiguous() || t.storage().is_postponed() {
                    return None;
                }
                (inputs[i], ins[i]) = (Some(*t), t.data_ptr().cast_const());
            }
            Arg::Number(c) if number.is_none() && is_held(*c, dtype) && n * dtype.size() <= SPREAD => {
                number = Some((i, *c));
            }
            _ => return None,
        }
    }
    // An output whose dtype is not the compute dtype must be converted.
    let is_kept = |rule: DTypeRule| match rule {
        DTypeRule::Generic(_) => true,
        DTypeRule::Fixed(d) => d.compute() == d,
        DTypeRule::Attr(_) | DTypeRule::Any => false,
    };
    if op.outputs.iter().any(|o| o.role != Role::Returned || !is_kept(o.dtype)) {
        return None;
    }
    let found = match Loop::of(op, &[dtype])?.or_machine_code(op, &[dtype], attrs, |_| true, n) {
        Loop::Kernel(kernel) => Found::Kernel(kernel),
        Loop::Program(programs) => Found::Program(programs.known(op, attrs, |_| true)?),
    };
    let is_converted = |rule: DTypeRule| matches!(rule, DTypeRule::Fixed(d) if d != DType::Bool);
    if matches!(found, Found::Program(_)) && op.outputs.iter().any(|o| is_converted(o.dtype)) {
        return None;
    }
    if matches!(found, Found::Program(p) if n > programs::grain(&p.plan) || !p.dtypes()[0].contains(dtype)) {
        return None;
    }
    let (scalar, mut spread);
    if let Some((i, value)) = number {
        scalar = graph::outside(|| Tensor::from_number(value, dtype, Device::Cpu)).ok()?;
        spread = Spread::default();
        // SAFETY: n elements of the dtype fit into the buffer, which is aligned for all of them.
        unsafe { fill(&scalar, spread.as_mut_ptr().cast(), n) };
        (inputs[i], ins[i]) = (Some(&scalar), spread.as_ptr().cast());
    }
    let inputs = &inputs[..args.len()];
    let mut run = || {
        op.check_predicates(&Bindings::default(), attrs)?;
        let recorded = inputs.iter().flatten().any(|t| t.requires_grad() || t.is_outdated()) && is_grad_enabled();
        let recording = if recorded { record::prepare(op, inputs, attrs)? } else { None };
        let mut outs = [std::ptr::null_mut(); FEW];
        for (k, ((output, slot), out)) in op.outputs.iter().zip(&mut *outputs).zip(&mut outs).enumerate() {
            let dtype = if let DTypeRule::Fixed(d) = output.dtype { d } else { dtype };
            let place = wanted.place(k, first.shape(), dtype, Device::Cpu);
            *out = slot.insert(place.map_or_else(|| Tensor::empty_like(first, dtype), Ok)?).data_ptr();
        }
        let (ins, outs) = (&ins[..args.len()], &outs[..outputs.len()]);
        let done = match &found {
            // SAFETY: every pointer is to n contiguous elements of the dtype of the kernel, which computes in no other.
            Found::Kernel(kernel) => unsafe { kernel.run(attrs, n, ins, outs) },
            Found::Program(program) => programs::run(op, &program.plan, dtype, attrs, n, ins, outs),
        };
        done.map_err(|e| e.context(format!("op '{}'", op.name)))?;
        if let Some(recording) = recording {
            recording.record(op, inputs, attrs, outputs);
        }
        Ok(())
    };
    Some(run())
}

/// Whether a plain number does not change the dtype of the tensors.
fn is_held(number: Const, dtype: DType) -> bool {
    match number {
        Const::Bool(_) => true,
        Const::Int(_) => dtype.kind() >= Kind::Unsigned,
        Const::Float(_) => dtype.kind() >= Kind::Float,
    }
}

/// Writes one element `n` times.
///
/// # Safety
/// At `to` there is room for `n` elements of the scalar's dtype.
unsafe fn fill(scalar: &Tensor, to: *mut u8, n: usize) {
    let size = scalar.dtype().size();
    for i in 0..n {
        // SAFETY: as the caller promises; the scalar has one element.
        unsafe { std::ptr::copy_nonoverlapping(scalar.data_ptr(), to.add(i * size), size) };
    }
}
