//! Fuses element ops into one program, which runs in one pass over memory.

use std::collections::HashSet;

use minitensor_kernels::program::{Output, Program, ScalarValue, Symbol};
use minitensor_kernels::{Const, Element};
use smallvec::SmallVec;

use crate::attr::{Attr, AttrKind};
use crate::dtype::{DType, DTypeSet};
use crate::error::Result;
use crate::graph::{Call, Cut, Graph, Operand, Source, ValueId};
use crate::op::gradient;
use crate::op::{Arity, CustomOpBuilder, DTypeRule, OpRef, Role};
use crate::tensor::{Device, Layout, Shape, Tensor};

/// The most instructions of a fused program.
const INSTRUCTIONS: usize = 512;
/// The most tensors that a group reads and computes for others.
const TENSORS: usize = 24;

/// Fuses calls of element ops that have one shape and one dtype. The calls of a group run together, where its last call
/// was: so no other call before that may read what the group computes, or change what it reads.
pub fn elements(mut graph: Graph) -> Graph {
    let groups = Groups::of(&graph);
    let mut calls = Vec::with_capacity(graph.calls.len());
    let outside = uses_outside(&graph, &groups);
    for (at, call) in graph.calls.iter().enumerate() {
        let Some(group) = groups.of_call[at] else {
            calls.push(call.clone());
            continue;
        };
        let members = &groups.members[group];
        if members.last() != Some(&at) {
            continue;
        }
        let own: Vec<&Call> = members.iter().map(|i| &graph.calls[*i]).collect();
        write(&graph, &own, &|id| outside[id.at()], &mut calls);
    }
    graph.calls = calls;
    graph
}

/// Writes these calls as one, or as several if one would compute too many tensors for others.
fn write(graph: &Graph, calls: &[&Call], is_used: &dyn Fn(ValueId) -> bool, to: &mut Vec<Call>) {
    if let [call] = calls {
        to.push((*call).clone());
    } else if let Some(fused) = fused(graph, calls, is_used) {
        to.push(fused);
    } else {
        let (first, second) = calls.split_at(calls.len() / 2);
        let read: HashSet<ValueId> = second.iter().flat_map(|call| call.reads()).collect();
        write(graph, first, &|id| is_used(id) || read.contains(&id), to);
        write(graph, second, is_used, to);
    }
}

/// Sets of calls that become one.
struct Groups {
    /// The group of each call.
    of_call: Vec<Option<usize>>,
    /// The calls of each group, in order.
    members: Vec<Vec<usize>>,
}

/// A group that may still grow.
struct Open {
    members: Vec<usize>,
    instructions: usize,
    /// The values that it reads, and those that it computes.
    reads: Vec<ValueId>,
    computes: Vec<ValueId>,
    cut: Cut,
}

impl Open {
    fn of(at: usize, call: &Call, instructions: usize) -> Open {
        let mut reads: Vec<ValueId> = call.reads().collect();
        reads.sort_unstable();
        reads.dedup();
        Open { members: vec![at], instructions, reads, computes: call.computes().collect(), cut: call.cut.clone() }
    }

    /// Both together, if they are small enough, and both or neither use histories. `self` runs after `other`.
    fn joined(&self, other: &Open) -> Option<Open> {
        let cut = self.cut.with(&other.cut)?;
        let mut reads: Vec<ValueId> = self.reads.iter().copied().filter(|id| !other.computes.contains(id)).collect();
        reads.extend(&other.reads);
        reads.sort_unstable();
        reads.dedup();
        let instructions = self.instructions + other.instructions;
        let fits = instructions <= INSTRUCTIONS && reads.len() <= TENSORS;
        fits.then(|| Open {
            members: other.members.iter().chain(&self.members).copied().collect(),
            instructions,
            reads,
            computes: other.computes.iter().chain(&self.computes).copied().collect(),
            cut,
        })
    }
}

impl Groups {
    fn of(graph: &Graph) -> Groups {
        let written = graph.written();
        let mut open: Vec<Option<Open>> = Vec::new();
        let mut groups = Groups { of_call: vec![None; graph.calls.len()], members: Vec::new() };
        let mut computed_by: Vec<Option<usize>> = vec![None; graph.values.len()];
        for (at, call) in graph.calls.iter().enumerate() {
            let mut joined: SmallVec<[usize; 4]> = SmallVec::new();
            for id in call.reads() {
                joined.extend(computed_by[id.at()].and_then(|at| groups.of_call[at]).filter(|g| open[*g].is_some()));
            }
            joined.sort_unstable();
            joined.dedup();
            let is_written = |id: ValueId| written[graph.value(id).memory as usize];
            let steps = fusible(graph, call).filter(|_| !call.reads().chain(call.computes()).any(is_written));
            let Some(steps) = steps else {
                // The call reads results of these groups, so they must run before it.
                joined.iter().for_each(|g| open[*g] = None);
                continue;
            };
            let shape = |call: &Call| call.computes().next().map(|id| (&graph.value(id).shape, kind(graph, call)));
            let mut group = Open::of(at, call, steps);
            let mut into = None;
            for g in joined {
                let Some(other) = &open[g] else { continue };
                let is_alike = shape(&graph.calls[other.members[0]]) == shape(call);
                let joined = group.joined(other).filter(|_| is_alike);
                open[g] = None;
                if let Some(joined) = joined {
                    group = joined;
                    into.get_or_insert(g);
                }
            }
            let into = into.unwrap_or_else(|| {
                open.push(None);
                open.len() - 1
            });
            group.members.sort_unstable();
            group.members.iter().for_each(|i| groups.of_call[*i] = Some(into));
            call.computes().for_each(|id| computed_by[id.at()] = Some(at));
            groups.members.resize(open.len(), Vec::new());
            groups.members[into] = group.members.clone();
            open[into] = Some(group);
        }
        groups
    }
}

/// For each value, whether an output of the graph or a call outside of its group uses it.
fn uses_outside(graph: &Graph, groups: &Groups) -> Vec<bool> {
    let mut group_of = vec![None; graph.values.len()];
    for (at, call) in graph.calls.iter().enumerate() {
        call.computes().for_each(|id| group_of[id.at()] = groups.of_call[at]);
    }
    let mut outside = vec![false; graph.values.len()];
    graph.outputs.iter().for_each(|id| outside[id.at()] = true);
    for (at, call) in graph.calls.iter().enumerate() {
        for id in call.reads().filter(|id| group_of[id.at()] != groups.of_call[at] || groups.of_call[at].is_none()) {
            outside[id.at()] = true;
        }
    }
    outside
}

/// The dtype in which a call computes.
fn kind(graph: &Graph, call: &Call) -> Option<DType> {
    let is_generic = |i: &usize| matches!(call.op.parameter(*i).dtype, DTypeRule::Generic(_));
    let dtype = |i: usize| if let Operand::Value(id) = call.args[i] { Some(graph.value(id).dtype) } else { None };
    (0..call.args.len()).filter(is_generic).find_map(dtype)
}

/// Whether a call can be fused with others.
pub fn is_fusible(graph: &Graph, call: &Call) -> bool {
    fusible(graph, call).is_some()
}

/// The number of instructions of a call that can be fused.
fn fusible(graph: &Graph, call: &Call) -> Option<usize> {
    let op = &call.op;
    let dtype = kind(graph, call).filter(|d| matches!(d, DType::F32 | DType::F64))?;
    let is_number = |id: ValueId| graph.value(id).dtype == dtype;
    let takes = |(i, arg): (usize, &Operand)| match (op.parameter(i).dtype, arg) {
        (DTypeRule::Generic(_), Operand::Value(id)) => is_number(*id),
        (DTypeRule::Generic(_), Operand::Number(_)) | (_, Operand::None) => true,
        (DTypeRule::Fixed(DType::Bool), Operand::Value(id)) => graph.value(*id).dtype == DType::Bool,
        _ => false,
    };
    let gives = |id: ValueId| is_number(id) || graph.value(id).dtype == DType::Bool;
    let shape = &graph.value(call.computes().next()?).shape;
    let is_plain = call.is_elementwise()
        && call.is_pure()
        && op.inputs.iter().all(|i| i.arity != Arity::Variadic)
        && op.outputs.iter().all(|o| o.role == Role::Returned)
        && call.args.iter().enumerate().all(takes)
        && call
            .computes()
            .all(|id| gives(id) && graph.value(id).shape == *shape && graph.value(id).device == Device::Cpu)
        && call.outputs.len() == op.outputs.len()
        && call.cut.detached.is_empty();
    if !is_plain {
        return None;
    }
    let uniforms = uniforms(call)?;
    let program = program(call).ok().flatten().filter(|p| !p.is_of_rows())?;
    (program.uniforms().len() == uniforms.len()).then(|| program.instructions().len())
}

fn program(call: &Call) -> Result<Option<Program>> {
    let is_given = |i: usize| !matches!(call.args.get(i), None | Some(Operand::None));
    match gradient::program_of_reals(&call.op, &call.attrs, is_given) {
        Some(program) => Ok(Some(program)),
        None => call.op.program(&call.attrs, is_given),
    }
}

/// The values of the `f64` attributes, which are the uniforms of the program.
fn uniforms(call: &Call) -> Option<Vec<f64>> {
    let floats = call.op.attrs.iter().zip(&call.attrs).filter(|(a, _)| a.kind == AttrKind::Float);
    // The program does not read an attribute that is not given.
    floats
        .map(|(_, value)| match value {
            Attr::Float(v) => Some(*v),
            Attr::Int(v) => Some(*v as f64),
            Attr::None => Some(0.0),
            _ => None,
        })
        .collect()
}

/// One call that computes what these calls compute, as far as it is used outside.
fn fused(graph: &Graph, calls: &[&Call], is_used: &dyn Fn(ValueId) -> bool) -> Option<Call> {
    let mut inner = vec![false; graph.values.len()];
    calls.iter().flat_map(|call| call.computes()).for_each(|id| inner[id.at()] = true);
    let mut inputs: Vec<ValueId> = Vec::new();
    let mut numbers: Vec<(ValueId, f64)> = Vec::new();
    for id in calls.iter().flat_map(|call| call.reads()).filter(|id| !inner[id.at()]) {
        match number(graph, id) {
            Some(value) => numbers.push((id, value)),
            None if !inputs.contains(&id) => inputs.push(id),
            None => {}
        }
    }
    let outputs: Vec<ValueId> = calls.iter().flat_map(|call| call.computes()).filter(|id| is_used(*id)).collect();
    // Without the constants, the inputs may broadcast to a smaller shape.
    let broadcast = inputs.iter().try_fold(Shape::default(), |shape, id| shape.broadcast(&graph.value(*id).shape))?;
    if outputs.len() > TENSORS || broadcast != graph.value(*outputs.first()?).shape {
        return None;
    }
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let programs = calls.iter().map(|call| program(call).ok().flatten()).collect::<Option<Vec<_>>>()?;
    let mut is_complete = true;
    let body = Program::write(&names, &[], |x, _| {
        let mut values: Vec<(ValueId, ScalarValue<Symbol>)> =
            inputs.iter().zip(x).map(|(id, x)| (*id, ScalarValue::Number(*x))).collect();
        values.extend(
            numbers.iter().map(|(id, value)| (*id, ScalarValue::Number(Symbol::constant(Const::Float(*value))))),
        );
        let zero = || Symbol::constant(Const::Int(0));
        for (call, program) in calls.iter().zip(&programs) {
            let operand = |arg: &Operand| match arg {
                Operand::None => zero(),
                // As a float: an integer zero, added to a number, is left out.
                Operand::Number(value) => Symbol::constant(as_float(*value)),
                Operand::Value(id) => match values.iter().rev().find(|(known, _)| known == id) {
                    Some((_, ScalarValue::Number(x))) => *x,
                    Some((_, ScalarValue::Mask(m))) => Symbol::select(*m, Symbol::constant(Const::Int(1)), zero()),
                    None => zero(),
                },
            };
            let args: Vec<Symbol> = call.args.iter().map(operand).collect();
            let numbers: Vec<Symbol> =
                uniforms(call).unwrap_or_default().into_iter().map(|v| Symbol::constant(Const::Float(v))).collect();
            match program.at::<Symbol>(&args, &numbers) {
                Some(results) => {
                    let pairs = call.outputs.iter().zip(results);
                    values.extend(pairs.filter_map(|(id, value)| id.map(|id| (id, value))));
                }
                None => is_complete = false,
            }
        }
        let value = |id: &ValueId| values.iter().find(|(known, _)| known == id).map(|(_, value)| *value);
        let output = |(k, id): (usize, &ValueId)| (format!("y{k}"), value(id).unwrap_or(ScalarValue::Number(zero())));
        outputs.iter().enumerate().map(output).collect::<Vec<(String, Output)>>()
    });
    if !is_complete {
        return None;
    }
    let dtype = kind(graph, calls[0])?;
    Some(Call {
        op: op(body, calls, &inputs, graph, dtype).ok()?,
        attrs: SmallVec::new(),
        numbers: None,
        args: inputs.iter().map(|id| Operand::Value(*id)).collect(),
        outputs: outputs.iter().map(|id| Some(*id)).collect(),
        is_wide: false,
        draws: false,
        cut: calls.iter().skip(1).try_fold(calls[0].cut.clone(), |cut, call| cut.with(&call.cut))?,
    })
}

/// The number that all elements of a constant are.
fn number(graph: &Graph, id: ValueId) -> Option<f64> {
    let Source::Constant(t) = &graph.value(id).source else { return None };
    let is_one = t.numel() > 0 && t.shape().iter().zip(t.strides()).all(|(size, stride)| *size == 1 || *stride == 0);
    let first = || {
        Tensor::over(
            t.storage().clone(),
            Layout { shape: Shape::default(), strides: Default::default(), offset: t.offset() },
            t.dtype(),
        )
    };
    (is_one && t.dtype() != DType::Bool).then(first)?.cast(DType::F64).ok()?.item::<f64>().ok()
}

fn as_float(value: Const) -> Const {
    match value {
        Const::Bool(v) => Const::Float(f64::from(u8::from(v))),
        Const::Int(v) => Const::Float(v as f64),
        float => float,
    }
}

/// The op of a fused program. Its name consists of those of its parts.
fn op(body: Program, calls: &[&Call], inputs: &[ValueId], graph: &Graph, dtype: DType) -> Result<OpRef> {
    const SHOWN: usize = 6;
    let mut parts: Vec<&str> = calls.iter().take(SHOWN).map(|call| call.op.name.as_ref()).collect();
    if calls.len() > SHOWN {
        parts.push("…");
    }
    let mut builder =
        CustomOpBuilder::from_program(format!("fused({})", parts.join(", ")), body)?.dtypes(DTypeSet::of(&[dtype]));
    for (i, id) in inputs.iter().enumerate() {
        if graph.value(*id).dtype == DType::Bool {
            builder = builder.mask(i);
        }
    }
    builder.finish()
}
