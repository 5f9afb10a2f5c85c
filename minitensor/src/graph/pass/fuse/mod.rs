//! Fuses calls into one program, which runs in one pass over memory: element ops, and row ops with the element ops before
//! and after them.

mod domain;
mod groups;
mod member;
mod write;

use std::collections::HashSet;

use groups::Groups;
use member::Member;
use minitensor_kernels::program::Instruction;
use smallvec::SmallVec;
use write::fused;

use crate::graph::{Call, Graph, Operand, ValueId};
use crate::op::Argument;
use crate::op::by_name::names;

/// Fuses calls of ops that run over one shape and compute in one dtype. The calls of a group run together, where its last
/// call was: so no other call before that may read what the group computes, or change what it reads.
pub fn calls(mut graph: Graph) -> Graph {
    let groups = Groups::of(&graph);
    let mut calls = Vec::with_capacity(graph.calls.len());
    let outside = uses_outside(&graph, &groups);
    for at in 0..graph.calls.len() {
        let Some(group) = groups.of_call[at] else {
            calls.push(graph.calls[at].clone());
            continue;
        };
        let members = &groups.members[group];
        if members.last() != Some(&at) {
            continue;
        }
        write(&mut graph, &groups, members, &|id| outside.get(id.at()) == Some(&true), &mut calls);
    }
    graph.calls = calls;
    graph
}

/// Writes these calls as one, or as several if one would compute too many tensors for others.
fn write(graph: &mut Graph, groups: &Groups, calls: &[usize], is_used: &dyn Fn(ValueId) -> bool, to: &mut Vec<Call>) {
    if let [at] = calls {
        to.push(graph.calls[*at].clone());
    } else if let Some(fused) = fused(graph, groups, calls, is_used) {
        to.extend(fused);
    } else {
        let (first, second) = calls.split_at(calls.len() / 2);
        let read: HashSet<ValueId> = second.iter().flat_map(|at| graph.calls[*at].reads()).collect();
        write(graph, groups, first, &|id| is_used(id) || read.contains(&id), to);
        write(graph, groups, second, is_used, to);
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

/// For each output of a call of an element op or of `clone`, the argument that it is a copy of.
pub fn copied(graph: &Graph, call: &Call) -> SmallVec<[Option<ValueId>; 1]> {
    if call.is_of(&names::CLONE) && call.cut.detached.is_empty() {
        return call.reads().map(Some).collect();
    }
    let member = if call.is_elementwise() { Member::of(graph, call) } else { None };
    let has_same_dtype = |id: &ValueId, k: usize| {
        let output = call.outputs.get(k).copied().flatten();
        output.is_some_and(|output| graph.value(*id).dtype == graph.value(output).dtype)
    };
    let argument = |k: usize| {
        let body = &member.as_ref()?.body;
        let (_, id) = body.program.outputs().get(k)?;
        let Instruction::Input(input) = body.program.instructions()[id.at()] else { return None };
        let Argument::Input(i) = body.inputs[input as usize] else { return None };
        let id = if let Some(Operand::Value(id)) = call.args.get(i) { Some(*id) } else { None };
        id.filter(|id| has_same_dtype(id, k))
    };
    (0..call.outputs.len()).map(argument).collect()
}

/// Whether a call of an element op can be fused with others.
pub fn is_fusible(graph: &Graph, call: &Call) -> bool {
    call.is_elementwise() && Member::of(graph, call).is_some()
}
