//! Joins an op that computes its result in parts, such as a matrix product, with the element op after it, which then reads each part
//! from the cache.

mod pair;

use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::graph::{Call, Cut, Graph, Operand, ValueId};
use crate::op::by_name::names;
use crate::op::{Arity, DTypeRule, Output, Role};
use crate::tensor::{Device, DeviceKind};
use pair::{Pair, Part, Slot};

/// Joins each element op with the call that computes one of its inputs. No other call may read that input, and no call between
/// the two may change an input of the first.
pub fn join(mut graph: Graph) -> Graph {
    let uses = Uses::of(&graph);
    let mut removed = BTreeSet::new();
    for at in (0..graph.calls.len()).filter(|at| is_element_op(&graph.calls[*at])).collect::<Vec<_>>() {
        let found = graph.calls[at].reads().filter_map(|id| Joined::of(&graph, &uses, at, id));
        // The last one waits for the fewest calls.
        if let Some(joined) = found.max_by_key(|joined| joined.calls[0]) {
            graph.calls[at] = joined.call(&graph, at);
            removed.extend(joined.calls);
        }
    }
    graph.remove_calls(&removed);
    graph
}

fn is_element_op(call: &Call) -> bool {
    call.is_elementwise()
        && call.is_pure()
        && call.cut.detached.is_empty()
        && call.op.generics.len() == 1
        && call.op.inputs.iter().all(|i| i.arity != Arity::Variadic)
        && call.op.outputs.iter().all(|o| o.role == Role::Returned)
}

/// Where the values of a graph are computed, read and changed, as the positions of calls.
struct Uses {
    computed: Vec<Option<usize>>,
    /// A result of the graph is read by one call more.
    read: Vec<BTreeSet<usize>>,
    /// For each memory.
    changed: Vec<Vec<usize>>,
}

impl Uses {
    fn of(graph: &Graph) -> Uses {
        let (values, end) = (graph.values.len(), graph.calls.len());
        let (mut computed, mut read) = (vec![None; values], vec![BTreeSet::new(); values]);
        let mut changed = vec![Vec::new(); graph.memories()];
        for (at, call) in graph.calls.iter().enumerate() {
            call.computes().for_each(|id| computed[id.at()] = Some(at));
            call.reads().for_each(|id| _ = read[id.at()].insert(at));
            call.changes().for_each(|id| changed[graph.memory(id)].push(at));
        }
        graph.outputs.iter().for_each(|id| _ = read[id.at()].insert(end));
        Uses { computed, read, changed }
    }

    /// Whether a call after `first` and before `last` changes an input of `first`.
    fn is_changed(&self, graph: &Graph, first: usize, last: usize) -> bool {
        graph.calls[first].reads().any(|id| {
            let changed = &self.changed[graph.memory(id)];
            changed.get(changed.partition_point(|at| *at <= first)).is_some_and(|at| *at < last)
        })
    }
}

/// Whether an element op computes tensors of this dtype, and converts none to it.
fn computes_in(graph: &Graph, call: &Call, dtype: DType) -> bool {
    let is_own = |rule: DTypeRule, id: ValueId| match rule {
        DTypeRule::Generic(_) => graph.value(id).dtype == dtype,
        DTypeRule::Fixed(fixed) => graph.value(id).dtype == fixed,
        _ => false,
    };
    let takes = |(i, arg): (usize, &Operand)| match arg {
        Operand::Value(id) => is_own(call.op.parameter(i).dtype, *id),
        _ => true,
    };
    let gives = |(output, id): (&Output, &Option<ValueId>)| id.is_none_or(|id| is_own(output.dtype, id));
    call.args.iter().enumerate().all(takes) && call.op.outputs.iter().zip(&call.outputs).all(gives)
}

/// Calls that are joined with an element op.
struct Joined {
    /// The call that computes in parts, then views of its result.
    calls: Vec<usize>,
    /// The value that the element op reads.
    read: ValueId,
    /// The histories that none of the calls uses.
    cut: Cut,
}

impl Joined {
    fn of(graph: &Graph, uses: &Uses, at: usize, read: ValueId) -> Option<Joined> {
        let (value, then) = (graph.value(read), &graph.calls[at]);
        if !then.computes().all(|id| graph.value(id).shape == value.shape) || !computes_in(graph, then, value.dtype) {
            return None;
        }
        let (mut calls, mut cut) = (Vec::new(), then.cut.clone());
        let (mut id, mut reader) = (read, at);
        loop {
            let first = uses.computed[id.at()].filter(|_| uses.read[id.at()].iter().eq([&reader]))?;
            let call = &graph.calls[first];
            cut = cut.with(&call.cut).filter(|_| call.is_pure() && call.cut.detached.is_empty())?;
            calls.insert(0, first);
            if !call.is_of(&names::RESHAPE) {
                let is_fit = computes_parts(graph, call) && !uses.is_changed(graph, first, at);
                return is_fit.then_some(Joined { calls, read, cut });
            }
            (id, reader) = (call.reads().next()?, first);
        }
    }

    /// The call of both ops.
    fn call(&self, graph: &Graph, at: usize) -> Call {
        let (first, then) = (&graph.calls[self.calls[0]], &graph.calls[at]);
        let value = graph.value(self.read);
        let mut args: SmallVec<[Operand; 4]> = SmallVec::new();
        let mut slot = |arg: &Operand| match arg {
            Operand::None => Slot::None,
            Operand::Number(number) => Slot::Number(*number),
            Operand::Value(id) if *id == self.read => Slot::Result,
            Operand::Value(_) => {
                args.push(*arg);
                Slot::Argument(args.len() - 1)
            }
        };
        let width = first.computes().next().and_then(|id| graph.value(id).shape.last().copied());
        let pair = Pair {
            first: Part {
                op: first.op.clone(),
                attrs: first.attrs.clone(),
                slots: first.args.iter().map(&mut slot).collect(),
            },
            then: Part {
                op: then.op.clone(),
                attrs: then.attrs.clone(),
                slots: then.args.iter().map(&mut slot).collect(),
            },
            width: width.unwrap_or(1),
            is_wanted: then.outputs.iter().map(Option::is_some).collect(),
            shape: value.shape.clone(),
            dtype: value.dtype,
        };
        Call {
            op: pair.op(),
            attrs: SmallVec::new(),
            numbers: None,
            args,
            outputs: then.outputs.iter().filter(|id| id.is_some()).copied().collect(),
            is_wide: then.is_wide,
            draws: false,
            origin: then.origin,
            cut: self.cut.clone(),
        }
    }
}

/// For each value, whether its parts can be passed on to the only call that reads it, instead of being stored.
pub fn passed_on(graph: &Graph) -> Vec<bool> {
    let mut readers = vec![0; graph.values.len()];
    graph.calls.iter().flat_map(Call::reads).for_each(|id| readers[id.at()] += 1);
    let mut passed_on = vec![false; graph.values.len()];
    for call in &graph.calls {
        if computes_parts(graph, call) || call.is_of(&names::RESHAPE) && call.reads().all(|id| passed_on[id.at()]) {
            call.computes().for_each(|id| passed_on[id.at()] = readers[id.at()] == 1);
        }
    }
    passed_on
}

/// Whether a call can pass on the parts of its result.
fn computes_parts(graph: &Graph, call: &Call) -> bool {
    let Some(result) = call.computes().next().map(|id| graph.value(id)) else { return false };
    let takes = |arg: &Operand| match arg {
        Operand::Value(id) => graph.value(*id).dtype == result.dtype,
        Operand::None => true,
        Operand::Number(_) => false,
    };
    matches!(result.dtype, DType::F32 | DType::F64)
        && result.device == Device::Cpu
        && call.op.kernels_on(DeviceKind::Cpu).any(|kernels| kernels.parts().is_some())
        && call.args.iter().all(takes)
}
