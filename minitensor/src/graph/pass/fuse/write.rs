//! Writes the calls of a group as one call.

use std::collections::{HashMap, HashSet};

use minitensor_kernels::Const;
use minitensor_kernels::program::{Output, Program, ScalarValue, Symbol, SymbolMask};
use minitensor_kernels::{Element, Float};
use smallvec::SmallVec;

use super::domain::{Domain, Place};
use super::groups::{Groups, TENSORS};
use super::member::{Kind, Member};
use crate::attr::Attr;
use crate::dtype::{DType, DTypeSet};
use crate::graph::{Call, Cut, Graph, Operand, Source, Value, ValueId};
use crate::op::by_name::names;
use crate::op::{Argument, Core, CustomOpBuilder, OpRef, runs_at};
use crate::tensor::Shape;

/// An input of the fused program: a value, and what there is a value for.
type Input = (ValueId, Place);

/// The calls that compute what these calls compute, as far as it is used outside: one, with views before and after it.
pub fn fused(graph: &mut Graph, groups: &Groups, at: &[usize], is_used: &dyn Fn(ValueId) -> bool) -> Option<Vec<Call>> {
    let calls: Vec<Call> = at.iter().map(|at| graph.calls[*at].clone()).collect();
    let members: Vec<&Member> = at.iter().map(|at| groups.all[*at].as_ref()).collect::<Option<_>>()?;
    let domain = members[1..].iter().try_fold(members[0].domain.clone(), |domain, m| domain.joined(&m.domain))?;
    let inner: HashSet<ValueId> = calls.iter().flat_map(Call::computes).collect();
    let numbers = &groups.numbers;
    let mut inputs: Vec<Input> = Vec::new();
    for (call, member) in calls.iter().zip(&members) {
        for (i, id) in values(call).filter(|(_, id)| !inner.contains(id) && !numbers.contains_key(id)) {
            let input = (id, place_of(graph, &domain, member.kind, call, i, id));
            if !inputs.contains(&input) {
                inputs.push(input);
            }
        }
    }
    let is_view = |k: &usize| members[*k].kind == Kind::View;
    let (views, others): (Vec<usize>, Vec<usize>) = (0..calls.len()).partition(is_view);
    let mut used: Vec<ValueId> = calls.iter().flat_map(Call::computes).filter(|id| is_used(*id)).collect();
    let views = used_views(views.iter().map(|k| &calls[*k]), &mut used);
    let outputs: Vec<ValueId> =
        others.iter().flat_map(|k| calls[*k].computes()).filter(|id| used.contains(id)).collect();
    let reached = |(id, place): &Input| reached(&domain, &graph.value(*id).shape, *place);
    // Without the constants, the inputs may broadcast to a smaller shape.
    let broadcast = inputs.iter().try_fold(Shape::default(), |shape, input| shape.broadcast(&reached(input)))?;
    let has_row = inputs.iter().any(|(_, place)| *place == Place::Element);
    // Without a tensor of its dtype variable, a program runs at `float32`.
    let is_own = |(id, _): &Input| Some(graph.value(*id).dtype.compute()) == domain.dtype;
    let has_dtype = domain.dtype.is_none_or(|dtype| dtype == DType::F32) || inputs.iter().any(is_own);
    if others.len() < 2
        || outputs.is_empty()
        || outputs.len() > TENSORS
        || broadcast != domain.shape
        || !has_row
        || !has_dtype
    {
        return None;
    }
    let body = Body { graph, domain: &domain, calls: &calls, members: &members, inputs: &inputs, numbers };
    // An integer dtype may not hold a constant that results from the others, such as the negative of one.
    let of_integers = domain.dtype.filter(|dtype| dtype.is_integer());
    let runs = |program: &Program| of_integers.is_none_or(|dtype| runs_at(program, dtype, false));
    let program = body.program(&outputs).filter(runs)?;
    let op = body.op(program, &outputs).ok()?;
    let cut = calls[1..].iter().try_fold(calls[0].cut.clone(), |cut, call| cut.with(&call.cut))?;
    let mut written = Vec::new();
    let mut reshaped = Vec::new();
    let mut args: SmallVec<[Operand; 4]> = SmallVec::new();
    for (id, place) in inputs {
        let shape = graph.value(id).shape.clone();
        let id = match place {
            Place::Row => {
                let flat = like(graph, id, shape[..shape.len() - 1].into());
                written.push(reshape(graph, id, flat)?);
                flat
            }
            _ => id,
        };
        args.push(Operand::Value(id));
    }
    let mut results: SmallVec<[Option<ValueId>; 1]> = SmallVec::new();
    for id in outputs {
        results.push(Some(match domain.place(&graph.value(id).shape)? {
            Place::Row => {
                let flat = like(graph, id, domain.batch().into());
                reshaped.push(reshape(graph, flat, id)?);
                flat
            }
            _ => id,
        }));
    }
    written.push(Call {
        op,
        attrs: SmallVec::new(),
        numbers: None,
        args,
        outputs: results,
        is_wide: false,
        draws: false,
        origin: None,
        cut,
    });
    written.extend(reshaped);
    written.extend(views);
    Some(written)
}

/// The views that are used outside, which remain views. Adds what they are views of to the values that are used.
fn used_views<'a>(views: impl DoubleEndedIterator<Item = &'a Call>, used: &mut Vec<ValueId>) -> Vec<Call> {
    let mut kept = Vec::new();
    for view in views.rev() {
        if view.computes().any(|id| used.contains(&id)) {
            used.extend(view.reads());
            kept.push(view.clone());
        }
    }
    kept.reverse();
    kept
}

/// The values among the arguments of a call, with their positions.
fn values(call: &Call) -> impl Iterator<Item = (usize, ValueId)> + '_ {
    call.args.iter().enumerate().filter_map(|(i, arg)| if let Operand::Value(id) = arg { Some((i, *id)) } else { None })
}

/// What an argument from outside has a value for.
fn place_of(graph: &Graph, domain: &Domain, kind: Kind, call: &Call, i: usize, id: ValueId) -> Place {
    let computes = call.computes().next().and_then(|id| domain.place(&graph.value(id).shape));
    let shape = &graph.value(id).shape;
    match (kind, call.op.parameter(i).core) {
        (Kind::View, _) => domain.place(shape).unwrap_or(Place::Element),
        (Kind::Elements, _) => domain.read(computes.unwrap_or(Place::Element), shape),
        (Kind::Rows, Core::Slice) => Place::Element,
        (Kind::Rows, _) => Place::Flat,
    }
}

/// The shape that broadcasts against elements.
fn reached(domain: &Domain, shape: &Shape, place: Place) -> Shape {
    match place {
        Place::Flat if domain.is_of_rows => shape.iter().copied().chain([1]).collect(),
        _ => shape.clone(),
    }
}

/// A new value with the elements of another.
fn like(graph: &mut Graph, id: ValueId, shape: Shape) -> ValueId {
    let value = Value { shape, source: Source::Computed, ..graph.value(id).clone() };
    graph.values.push(value);
    ValueId(graph.values.len() as u32 - 1)
}

fn reshape(graph: &Graph, from: ValueId, to: ValueId) -> Option<Call> {
    let sizes: Vec<i64> = graph.value(to).shape.iter().map(|n| *n as i64).collect();
    Some(Call {
        op: names::RESHAPE.get().ok()?.clone(),
        attrs: [Attr::Ints(sizes.into())].into_iter().collect(),
        numbers: None,
        args: [Operand::Value(from)].into_iter().collect(),
        outputs: [Some(to)].into_iter().collect(),
        is_wide: false,
        draws: false,
        origin: None,
        cut: Cut::default(),
    })
}

/// What a fused op is made of.
struct Body<'a> {
    graph: &'a Graph,
    domain: &'a Domain,
    calls: &'a [Call],
    members: &'a [&'a Member],
    inputs: &'a [Input],
    numbers: &'a HashMap<ValueId, f64>,
}

impl Body<'_> {
    /// The program of all calls. `None` if one cannot be evaluated.
    fn program(&self, outputs: &[ValueId]) -> Option<Program> {
        let names: Vec<String> = (0..self.inputs.len()).map(|i| format!("x{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut is_complete = true;
        let program = Program::write(&names, &[], |x, _| {
            let mut computed: Vec<(ValueId, ScalarValue<Symbol>)> = Vec::new();
            for (call, member) in self.calls.iter().zip(self.members) {
                let operand = |argument: &Argument| match argument {
                    Argument::Input(i) => self.operand(call, member.kind, *i, x, &computed),
                    Argument::Number(value) => Symbol::constant(Const::Float(*value)),
                    Argument::Cotangent(_) => zero(),
                };
                let inputs: Vec<Symbol> = member.body.inputs.iter().map(operand).collect();
                let uniforms: Vec<Symbol> = member.body.uniforms.iter().map(operand).collect();
                match member.body.program.at::<Symbol>(&inputs, &uniforms) {
                    Some(results) => {
                        let pairs = call.outputs.iter().zip(results);
                        computed.extend(
                            pairs.filter_map(|(id, value)| id.map(|id| (id, self.stored(id, member.kind, value)))),
                        );
                    }
                    None => is_complete = false,
                }
            }
            let value = |id: &ValueId| computed.iter().find(|(known, _)| known == id).map(|(_, value)| *value);
            let output =
                |(k, id): (usize, &ValueId)| (format!("y{k}"), value(id).unwrap_or(ScalarValue::Number(zero())));
            outputs.iter().enumerate().map(output).collect::<Vec<(String, Output)>>()
        });
        is_complete.then_some(program)
    }

    /// A computed value, as its dtype stores it.
    fn stored(&self, id: ValueId, kind: Kind, value: ScalarValue<Symbol>) -> ScalarValue<Symbol> {
        match (value, self.graph.value(id).dtype) {
            (ScalarValue::Number(x), DType::F16) if kind != Kind::View => ScalarValue::Number(x.as_float16()),
            (ScalarValue::Number(x), DType::Bf16) if kind != Kind::View => ScalarValue::Number(x.as_bfloat16()),
            (ScalarValue::Number(x), DType::Bool) => ScalarValue::Mask(x.truthy()),
            (value, _) => value,
        }
    }

    /// An argument of a call.
    fn operand(
        &self,
        call: &Call,
        kind: Kind,
        i: usize,
        x: &[Symbol],
        computed: &[(ValueId, ScalarValue<Symbol>)],
    ) -> Symbol {
        let id = match call.args.get(i) {
            None | Some(Operand::None) => return zero(),
            Some(Operand::Number(value)) => return Symbol::constant(self.constant(*value)),
            Some(Operand::Value(id)) => *id,
        };
        match computed.iter().rev().find(|(known, _)| *known == id) {
            Some((_, ScalarValue::Number(x))) => return *x,
            Some((_, ScalarValue::Mask(m))) => return number_of(*m),
            None => {}
        }
        if let Some(number) = self.numbers.get(&id) {
            return Symbol::constant(self.constant(Const::Float(*number)));
        }
        let input = (id, place_of(self.graph, self.domain, kind, call, i, id));
        let operand = self.inputs.iter().position(|known| *known == input).map_or_else(zero, |k| x[k]);
        if self.graph.value(id).dtype == DType::Bool { number_of(operand.truthy()) } else { operand }
    }

    /// A constant of the program. An integer zero that is added to a number is left out, which would change the sign of a float.
    fn constant(&self, value: Const) -> Const {
        let is_of_integers = self.domain.dtype.is_some_and(DType::is_integer);
        match (value, is_of_integers) {
            (Const::Bool(v), _) => self.constant(Const::Int(v.into())),
            (Const::Int(v), false) => Const::Float(v as f64),
            (Const::Float(v), true) => Const::Int(v as i128),
            (value, _) => value,
        }
    }

    /// The op of the program. Its name consists of those of its parts.
    fn op(&self, program: Program, outputs: &[ValueId]) -> crate::error::Result<OpRef> {
        const SHOWN: usize = 6;
        let mut parts: Vec<&str> = self.calls.iter().take(SHOWN).map(|call| call.op.name.as_ref()).collect();
        if self.calls.len() > SHOWN {
            parts.push("…");
        }
        let name = format!("fused({})", parts.join(", "));
        let dims = |place: Option<Place>| if place == Some(Place::Element) { "[.., n]" } else { "[..]" };
        let builder = if self.domain.is_of_rows {
            let inputs = self.inputs.iter().enumerate().map(|(k, (_, place))| format!("x{k}: {}", dims(Some(*place))));
            let outputs = outputs
                .iter()
                .enumerate()
                .map(|(k, id)| format!("y{k}: {}", dims(self.domain.place(&self.graph.value(*id).shape))));
            let (inputs, outputs): (Vec<_>, Vec<_>) = (inputs.collect(), outputs.collect());
            let shape = format!("({}) -> ({})", inputs.join(", "), outputs.join(", "));
            CustomOpBuilder::from_row_program(name, program, Some(&shape))?
        } else {
            CustomOpBuilder::from_program(name, program)?
        };
        // The first number that is computed in this dtype has the dtype variable.
        let dtype = |id: ValueId| self.graph.value(id).dtype;
        let of_inputs = || self.inputs.iter().map(|(id, _)| dtype(*id)).enumerate();
        let is_own = |dtype: &DType| Some(dtype.compute()) == self.domain.dtype;
        let own = of_inputs().map(|(_, dtype)| dtype).find(is_own).unwrap_or(DType::F32);
        let has_other = |(_, dtype): &(usize, DType)| *dtype != own;
        let of_outputs = outputs.iter().map(|id| dtype(*id)).enumerate();
        let builder = builder.dtypes(DTypeSet::of(&[own]));
        let builder = of_inputs().filter(has_other).fold(builder, |op, (k, dtype)| op.input_dtype(k, dtype));
        of_outputs.filter(has_other).fold(builder, |op, (k, dtype)| op.output_dtype(k, dtype)).finish()
    }
}

fn zero() -> Symbol {
    Symbol::constant(Const::Int(0))
}

/// 1 for true, 0 for false.
fn number_of(truth: SymbolMask) -> Symbol {
    Symbol::select(truth, Symbol::constant(Const::Int(1)), zero())
}
