//! [`Member`]: a call that can be fused with others.

use minitensor_kernels::Const;
use minitensor_kernels::program::{Instruction, Program};
use minitensor_schema::shape::Dims;

use super::domain::{Domain, Place};
use crate::attr::{Attr, AttrKind};
use crate::backend::compiles_programs;
use crate::dtype::DType;
use crate::graph::{Call, Graph, Operand, ValueId};
use crate::op::by_name::names;
use crate::op::{Argument, Arguments, Arity, Body, Core, DTypeRule, Role, ShapeRule, gradient, runs_at};
use crate::tensor::{Device, Region, Shape};

/// The fewest and the most elements of a row. A longer row has work for several threads.
const LENGTHS: std::ops::RangeInclusive<usize> = 2..=1 << 15;

/// How a call computes its outputs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// Element by element, from inputs that broadcast.
    Elements,
    /// Row by row.
    Rows,
    /// Not at all: the output has the elements of the input, with another last dimension.
    View,
}

/// A call that can be fused with others, as a program.
pub struct Member {
    pub kind: Kind,
    /// The program, and which arguments of the call are its inputs and uniforms.
    pub body: Arguments,
    pub domain: Domain,
}

impl Member {
    /// `None` if the call cannot be fused.
    pub fn of(graph: &Graph, call: &Call) -> Option<Member> {
        if let Some(same) = view(graph, call).or_else(|| cast(graph, call)) {
            return Some(same);
        }
        let op = &call.op;
        let own = dtype(graph, call);
        let dtype = match own {
            Some(own) => Some(computed(own)?),
            None => None,
        };
        let is_of_integers = dtype.is_some_and(DType::is_integer);
        let is_number = |id: ValueId| {
            let value = graph.value(id).dtype;
            value == DType::Bool || computed(value) == dtype
        };
        // An integer becomes a number of the dtype in which all are computed, without rounding to another.
        let is_exact = own == dtype && !is_of_integers && op.generics.len() == 1;
        let is_taken = |id: ValueId| is_number(id) || is_exact && graph.value(id).dtype.is_integer();
        let takes = |(i, arg): (usize, &Operand)| match (op.parameter(i).dtype, arg) {
            (DTypeRule::Generic(_), Operand::Value(id)) => is_taken(*id),
            (DTypeRule::Generic(_), Operand::Number(Const::Bool(_))) | (_, Operand::None) => true,
            // Truth values join a group of any dtype, which may not hold the number.
            (DTypeRule::Generic(_), Operand::Number(Const::Int(_))) => dtype.is_some(),
            (DTypeRule::Generic(_), Operand::Number(Const::Float(_))) => dtype.is_some_and(DType::is_differentiable),
            (DTypeRule::Fixed(DType::Bool), Operand::Value(id)) => graph.value(*id).dtype == DType::Bool,
            _ => false,
        };
        let is_plain = call.is_pure()
            && call.cut.detached.is_empty()
            && call.outputs.len() == op.outputs.len()
            && op.inputs.iter().all(|i| i.arity != Arity::Variadic)
            && op.outputs.iter().all(|o| o.role == Role::Returned)
            && call.args.iter().enumerate().all(takes)
            && call.computes().all(|id| is_number(id) && compiles_programs(graph.value(id).device));
        if !is_plain {
            return None;
        }
        let (shape, kind) = match &op.body {
            Body::Element(_) => (graph.value(call.computes().next()?).shape.clone(), Kind::Elements),
            Body::Cell(Some(_)) if dtype.is_some() && !is_of_integers => (rows(graph, call)?, Kind::Rows),
            _ => return None,
        };
        let is_of_rows = kind == Kind::Rows;
        let domain = Domain { shape, is_of_rows, dtype };
        let has_place = |id: ValueId| match domain.place(&graph.value(id).shape) {
            Some(place) => is_of_rows || place == Place::Element,
            None => false,
        };
        let body = body(call, is_of_rows).filter(|body| is_of_rows || !body.program.is_of_rows())?;
        // A group of any dtype computes truth values. Without machine code, integers are not computed faster than by separate calls.
        let is_on_cpu = call.computes().any(|id| graph.value(id).device == Device::Cpu);
        let runs = match dtype {
            Some(dtype) if is_of_integers => runs_at(&body.program, dtype, is_on_cpu),
            Some(_) => true,
            None => runs_at(&body.program, DType::Bool, false),
        };
        let has_attributes = !dtype.is_some_and(DType::is_differentiable) && !body.uniforms.is_empty();
        (runs && !has_attributes && call.computes().all(has_place)).then_some(Member { kind, body, domain })
    }

    /// The number of instructions.
    pub fn len(&self) -> usize {
        self.body.program.instructions().len()
    }
}

/// A view that adds or removes a last dimension of size 1, or repeats each element along a last dimension.
fn view(graph: &Graph, call: &Call) -> Option<Member> {
    let ([Operand::Value(x), ..], [Some(y)]) = (&call.args[..], &call.outputs[..]) else { return None };
    let (from, to) = (graph.value(*x), graph.value(*y));
    let dtype = computed(from.dtype).filter(|dtype| !dtype.is_integer())?;
    let one_more = |short: &Shape, long: &Shape| long.split_last() == Some((&1, &**short));
    let is_view = if [&names::RESHAPE, &names::SQUEEZE, &names::UNSQUEEZE].iter().any(|name| call.is_of(name)) {
        one_more(&from.shape, &to.shape) || one_more(&to.shape, &from.shape)
    } else if call.is_of(&names::EXPAND) {
        from.shape.last() == Some(&1) && from.shape.split_last().map(|s| s.1) == to.shape.split_last().map(|s| s.1)
    } else {
        let region = || match call.attrs.first() {
            Some(Attr::Ints(region)) => Region::read(region).ok(),
            _ => None,
        };
        call.is_of(&names::PART) && region().is_some_and(|region| region.differs_in_last_axis())
    };
    let is_plain = is_view && call.is_pure() && call.cut.detached.is_empty() && from.memory == to.memory;
    let domain = Domain { shape: to.shape.clone(), is_of_rows: false, dtype: Some(dtype) };
    (is_plain && compiles_programs(from.device)).then(|| Member { kind: Kind::View, body: identity(), domain })
}

/// A conversion between dtypes that are computed in the same dtype, from or to truth values, from integers to such a float, or from floats
/// to integers.
fn cast(graph: &Graph, call: &Call) -> Option<Member> {
    let ([Operand::Value(x)], [Some(y)]) = (&call.args[..], &call.outputs[..]) else { return None };
    let (from, to) = (graph.value(*x), graph.value(*y));
    let dtype = match (computed(from.dtype), computed(to.dtype)) {
        (Some(from), Some(to)) if from == to => from,
        (Some(dtype), None) if to.dtype == DType::Bool => dtype,
        (None, Some(dtype)) if from.dtype == DType::Bool => dtype,
        (Some(from), Some(to)) if to.is_integer() && !from.is_integer() => from,
        (Some(from), Some(dtype)) if from.is_integer() && dtype == to.dtype && !dtype.is_integer() => dtype,
        _ => return None,
    };
    let is_cast = call.is_of(&names::ASTYPE) && from.memory != to.memory;
    let is_plain = is_cast && call.is_pure() && call.cut.detached.is_empty();
    let domain = Domain { shape: to.shape.clone(), is_of_rows: false, dtype: Some(dtype) };
    (is_plain && compiles_programs(from.device)).then(|| Member { kind: Kind::Elements, body: identity(), domain })
}

/// The program of a call that returns its argument.
fn identity() -> Arguments {
    let program = Program::write(&["x"], &[], |x, _| vec![("y".into(), x[0].into())]);
    Arguments { program, inputs: vec![Argument::Input(0)], uniforms: Vec::new() }
}

/// The dtype in which a fused program computes numbers of a dtype. `None` for truth values and complex numbers.
fn computed(dtype: DType) -> Option<DType> {
    Some(dtype.compute()).filter(|dtype| dtype.is_integer() || matches!(dtype, DType::F32 | DType::F64))
}

/// The dtype of the first float that a call takes or, if it takes none, computes. Without floats, that of the first integer. `None` if all
/// are truth values.
fn dtype(graph: &Graph, call: &Call) -> Option<DType> {
    let is_generic = |i: &usize| matches!(call.op.parameter(*i).dtype, DTypeRule::Generic(_));
    let taken = |i: usize| if let Operand::Value(id) = call.args[i] { Some(graph.value(id).dtype) } else { None };
    let all = || {
        let computed = call.computes().map(|id| graph.value(id).dtype);
        (0..call.args.len()).filter(is_generic).filter_map(taken).chain(computed)
    };
    all().find(|dtype| dtype.is_differentiable()).or_else(|| all().find(|dtype| dtype.is_integer()))
}

/// The program of a call.
fn body(call: &Call, is_of_rows: bool) -> Option<Arguments> {
    let is_given = |i: usize| !matches!(call.args.get(i), None | Some(Operand::None));
    let reals = || gradient::program_of_reals(&call.op, &call.attrs, is_given);
    let body = match reals().filter(|_| !is_of_rows) {
        Some(program) => Arguments {
            program,
            inputs: (0..call.op.inputs.len()).map(Argument::Input).collect(),
            uniforms: numbers(call)?,
        },
        None => call.op.forward(&call.attrs, is_given).ok().flatten()?,
    };
    let is_plain = |instruction: &Instruction| !matches!(instruction, Instruction::Position | Instruction::Row(..));
    let fits = |program: &Program| {
        (program.inputs().len(), program.uniforms().len()) == (body.inputs.len(), body.uniforms.len())
    };
    (fits(&body.program) && body.program.instructions().iter().all(is_plain)).then_some(body)
}

/// The values of the `f64` attributes, which are the uniforms of the program.
fn numbers(call: &Call) -> Option<Vec<Argument>> {
    let floats = call.op.attrs.iter().zip(&call.attrs).filter(|(a, _)| a.kind == AttrKind::Float);
    // The program does not read an attribute that is not given.
    let number = |value: &Attr| match value {
        Attr::Float(v) => Some(*v),
        Attr::Int(v) => Some(*v as f64),
        Attr::None => Some(0.0),
        _ => None,
    };
    floats.map(|(_, value)| number(value).map(Argument::Number)).collect()
}

/// The shape whose last dimension are the rows of a call, if it reduces along that dimension.
fn rows(graph: &Graph, call: &Call) -> Option<Shape> {
    let op = &call.op;
    let ShapeRule::Core(rule) = &op.shape else { return None };
    let is_shared = |dims: &Dims| !dims.batch;
    let is_one = |dims: &Dims| dims.core.len() <= 1;
    let has_sums = rule.outputs.iter().any(is_shared) && !rule.inputs.iter().all(is_shared);
    if has_sums || !rule.inputs.iter().chain(rule.outputs.iter()).all(is_one) {
        return None;
    }
    let mut shape: Option<Shape> = None;
    for (i, input) in op.inputs.iter().enumerate() {
        let Operand::Value(id) = call.args.get(i)? else { continue };
        let own = &graph.value(*id).shape;
        let is_row = input.core == Core::Slice;
        let (last, batch) = if is_row { own.split_last()? } else { (&1, &own[..]) };
        let own: Shape = batch.iter().copied().chain([*last]).collect();
        if is_row && shape.as_ref().and_then(|s| s.last().copied()).is_some_and(|n| n != 1 && n != *last) {
            return None;
        }
        shape = Some(shape.map_or(Some(own.clone()), |shape| shape.broadcast(&own))?);
    }
    let shape = shape.filter(|shape| shape.last().is_some_and(|n| LENGTHS.contains(n)))?;
    let is_last = |axis: i64| axis == -1 || axis == shape.len() as i64 - 1;
    let along_last = match op.axis.as_ref().map(|axis| call.attrs.get(axis.attr as usize)) {
        None => true,
        Some(Some(Attr::Int(axis))) => is_last(*axis),
        Some(Some(Attr::Ints(axes))) => matches!(axes[..], [axis] if is_last(axis)),
        Some(_) => false,
    };
    along_last.then_some(shape)
}
