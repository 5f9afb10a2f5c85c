//! Computes element and row ops by their programs, on a device whose [`Backend`] compiles programs.

use std::any::Any;
use std::sync::Arc;

use minitensor_kernels::Machine;
use minitensor_kernels::program::Program;
use smallvec::SmallVec;

use super::Wanted;
use super::shapes::{CallShapes, broadcast};
use crate::attr::{Attr, uniform};
use crate::autograd::NoGrad;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::call::dtype_rule::DTypes;
use crate::op::call::shape_rule::CoreShapes;
use crate::op::variants::Prepared;
use crate::op::{Body, Call, DTypeRule, Kernels, OpDef, Role};
use crate::tensor::allocator::{Backend, backend};
use crate::tensor::{Device, DeviceKind, Shape, Tensor};

/// A program, and its arguments on a device.
pub struct ProgramCall<'a> {
    /// The op, for messages.
    pub op: &'a str,
    /// The program. While `owner` lives, no other program has its address.
    pub program: &'a Program,
    /// Owns the program.
    pub owner: &'a Arc<dyn Any + Send + Sync>,
    /// The dtype of the numbers that it computes.
    pub dtype: DType,
    /// The positions of the inputs of the program that are truth values.
    pub masks: &'a [usize],
    /// The device.
    pub device: Device,
    /// The uniforms of the program that have one value for all elements, by their bits.
    pub uniforms: &'a [u64],
}

/// The arguments of a program over elements.
pub struct Elements<'a> {
    /// The shape that all of them have, or that inputs broadcast to.
    pub shape: &'a Shape,
    /// The inputs of the program; `None` for one that is not given.
    pub inputs: &'a [Option<&'a Tensor>],
    /// The outputs; `None` for one that is not wanted. They have any strides.
    pub outputs: &'a [Option<&'a Tensor>],
}

/// The arguments of a program over rows. Batch dimensions precede the dimension of the row.
pub struct RowsOfCall<'a> {
    /// The batch dimensions.
    pub batch: &'a Shape,
    /// The length of the rows.
    pub count: usize,
    /// The inputs of the program. One without a batch is the same row for all.
    pub inputs: &'a [Option<Tensor>],
    /// The first uniforms of the program, which have one value for each row.
    pub numbers: &'a [Option<Tensor>],
    /// How many of the last numbers are positions in the row, of dtype `int64`.
    pub positions: usize,
    /// The outputs, and what they are.
    pub outputs: &'a [Option<(Tensor, RowOutput)>],
}

/// What an output of a program over rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOutput {
    /// Whether it has a number for each element of a row.
    pub is_row: bool,
    /// Whether it is the sum over all rows.
    pub is_shared: bool,
}

/// Computes the wanted outputs. `None` if the device does not compile the program of the call.
pub fn run(
    call: &Call<'_>,
    dtypes: &DTypes,
    device: Device,
    shapes: Option<(&CallShapes, &CoreShapes)>,
    wanted: Wanted<'_>,
) -> Result<Option<SmallVec<[Option<Tensor>; 1]>>> {
    let Some(backend) = backend(device.kind()).filter(|backend| backend.compiles_programs()) else { return Ok(None) };
    let [dtype] = dtypes[..] else { return Ok(None) };
    let _quiet = NoGrad::new();
    match (&call.op.body, shapes) {
        (Body::Element(Some(_)), None) => elements(backend, call, dtype, dtypes, device, wanted),
        (Body::Cell(Some(_)), Some((shapes, rule))) => {
            rows(backend, call, dtype, dtypes, device, (shapes, rule), wanted)
        }
        _ => Ok(None),
    }
}

fn elements(
    backend: &dyn Backend,
    call: &Call<'_>,
    dtype: DType,
    dtypes: &DTypes,
    device: Device,
    wanted: Wanted<'_>,
) -> Result<Option<SmallVec<[Option<Tensor>; 1]>>> {
    let Call { op, inputs, attrs } = *call;
    let Some(programs) = op.kernels_on(DeviceKind::Cpu).find_map(Kernels::elements) else { return Ok(None) };
    let prepared = programs.at(&[dtype.compute()], op, attrs, |i| inputs[i].is_some())?;
    let program = prepared.plan.program();
    let arguments = op.program_arguments();
    let Some(uniforms) = uniforms(op, attrs, &arguments.floats, dtype)? else { return Ok(None) };
    let shape = broadcast(op, inputs)?;
    let outputs = outputs(call, dtypes, device, wanted, |_| shape.clone())?;
    let written: SmallVec<[Option<&Tensor>; 2]> = outputs.iter().map(Option::as_ref).collect();
    let owner: Arc<dyn Any + Send + Sync> = prepared.clone();
    let masks = masks(op, &arguments.inputs);
    let call = ProgramCall {
        op: &op.name,
        program,
        owner: &owner,
        dtype: dtype.compute(),
        masks: &masks,
        device,
        uniforms: &uniforms,
    };
    let is_computed = backend.run_elements(&call, &Elements { shape: &shape, inputs, outputs: &written })?;
    drop(written);
    Ok(is_computed.then_some(outputs))
}

fn rows(
    backend: &dyn Backend,
    call: &Call<'_>,
    dtype: DType,
    dtypes: &DTypes,
    device: Device,
    (shapes, rule): (&CallShapes, &CoreShapes),
    wanted: Wanted<'_>,
) -> Result<Option<SmallVec<[Option<Tensor>; 1]>>> {
    let Call { op, inputs, attrs } = *call;
    let Some(programs) = op.kernels_on(DeviceKind::Cpu).find_map(Kernels::rows) else { return Ok(None) };
    if !matches!(dtype.compute(), DType::F32 | DType::F64) {
        return Ok(None);
    }
    let prepared = programs.at(&[dtype.compute()], op, attrs, |i| inputs[i].is_some())?;
    let arguments = prepared.arguments();
    let Some(uniforms) = uniforms(op, attrs, &arguments.floats, dtype)? else { return Ok(None) };
    let in_form = |i: &usize| inputs[*i].map(|t| shapes.kernel_input(rule, *i, t)).transpose();
    let in_forms = |all: &[usize]| all.iter().map(in_form).collect::<Result<Vec<Option<Tensor>>>>();
    let rows = in_forms(&arguments.inputs)?;
    let Some(count) = rows.iter().flatten().map(|t| t.shape().last().copied().unwrap_or(1)).next() else {
        return Ok(None);
    };
    prepared.check_positions(count, dtype.compute())?;
    let numbers = in_forms(&[&arguments.numbers[..], &arguments.positions].concat())?;
    let outputs = outputs(call, dtypes, device, wanted, |k| shapes.outputs[k].clone())?;
    let mut places = Vec::new();
    for (k, t) in outputs.iter().enumerate() {
        let what = RowOutput { is_row: prepared.gives()[k], is_shared: prepared.shared()[k] };
        places.push(match t {
            Some(t) => Some((place(t, shapes, rule, k)?, what)),
            None => None,
        });
    }
    let owner: Arc<dyn Any + Send + Sync> = prepared.clone();
    let program = prepared.program();
    let masks = masks(op, &arguments.inputs);
    let program_call = ProgramCall {
        op: &op.name,
        program,
        owner: &owner,
        dtype: dtype.compute(),
        masks: &masks,
        device,
        uniforms: &uniforms,
    };
    let arguments = RowsOfCall {
        batch: &shapes.batch,
        count,
        inputs: &rows,
        numbers: &numbers,
        positions: arguments.positions.len(),
        outputs: &places,
    };
    if !backend.run_rows(&program_call, &arguments)? {
        return Ok(None);
    }
    for (k, (t, place)) in outputs.iter().zip(&places).enumerate() {
        if let (Some(t), Some((place, _))) = (t, place)
            && !std::ptr::eq(t.data_ptr(), place.data_ptr())
        {
            t.copy_from(&shapes.call_output(rule, k, place)?)?;
        }
    }
    Ok(Some(outputs))
}

/// An output in the form that kernels write: a view of it or, if there is none, another tensor.
fn place(t: &Tensor, shapes: &CallShapes, rule: &CoreShapes, output: usize) -> Result<Tensor> {
    let (dims, shape) = (&rule.outputs[output], shapes.kernel_shape(rule, output));
    let view = match &shapes.axes {
        Some(axes) if dims.batch && !dims.core.is_empty() => axes.to_last(t)?,
        _ if *t.shape() == shape => t.clone(),
        _ => t.reshape_view(&shape.iter().map(|n| *n as i64).collect::<Vec<_>>())?,
    };
    if std::ptr::eq(view.data_ptr(), t.data_ptr()) { Ok(view) } else { Tensor::empty(shape, t.dtype(), t.device()) }
}

/// The wanted outputs: new tensors, or the inputs that are changed.
fn outputs(
    call: &Call<'_>,
    dtypes: &DTypes,
    device: Device,
    wanted: Wanted<'_>,
    shape: impl Fn(usize) -> Shape,
) -> Result<SmallVec<[Option<Tensor>; 1]>> {
    let mut outputs = SmallVec::new();
    for (k, output) in call.op.outputs.iter().enumerate() {
        outputs.push(match output.role {
            _ if !wanted.has(k) => None,
            Role::Mutates(i) => call.inputs[usize::from(i)].map(Tensor::detach),
            _ => wanted.output(k, &shape(k), call.op.stored_dtype_of(output, dtypes, call.attrs)?, device)?,
        });
    }
    Ok(outputs)
}

/// The inputs of the program, by number, that are truth values.
fn masks(op: &OpDef, inputs: &[usize]) -> Vec<usize> {
    let is_mask = |k: &usize| op.inputs[inputs[*k]].dtype == DTypeRule::Fixed(DType::Bool);
    (0..inputs.len()).filter(is_mask).collect()
}

/// The float attributes as the bits of numbers of a dtype. `None` for complex numbers.
fn uniforms(op: &OpDef, attrs: &[Attr], floats: &[usize], dtype: DType) -> Result<Option<SmallVec<[u64; 4]>>> {
    fn of<T: Machine>(op: &OpDef, attrs: &[Attr], floats: &[usize], bits: fn(T) -> u64) -> Result<SmallVec<[u64; 4]>> {
        floats.iter().map(|k| Ok(bits(uniform::<T>(attrs, *k, &op.attrs[*k].name)?))).collect()
    }
    Ok(Some(match dtype.compute() {
        DType::F32 => of::<f32>(op, attrs, floats, |x| x.to_bits().into())?,
        DType::F64 => of::<f64>(op, attrs, floats, f64::to_bits)?,
        DType::I8 => of::<i8>(op, attrs, floats, |x| x as u64)?,
        DType::I16 => of::<i16>(op, attrs, floats, |x| x as u64)?,
        DType::I32 => of::<i32>(op, attrs, floats, |x| x as u64)?,
        DType::I64 => of::<i64>(op, attrs, floats, |x| x as u64)?,
        DType::U8 => of::<u8>(op, attrs, floats, u64::from)?,
        DType::U16 => of::<u16>(op, attrs, floats, u64::from)?,
        DType::U32 => of::<u32>(op, attrs, floats, u64::from)?,
        DType::U64 => of::<u64>(op, attrs, floats, |x| x)?,
        DType::Bool => of::<bool>(op, attrs, floats, u64::from)?,
        _ => return Ok(None),
    }))
}
