//! [`Groups`]: sets of calls that become one.

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

use super::domain::{Domain, Place};
use super::member::{Kind, Member};
use crate::dtype::DType;
use crate::graph::{Call, Cut, Graph, Operand, Source, Value, ValueId};
use crate::op::Core;
use crate::tensor::{Layout, Shape, Tensor};

/// The most instructions of a fused program.
const INSTRUCTIONS: usize = 512;
/// The most tensors that a group reads and computes for others.
pub const TENSORS: usize = 24;

/// Sets of calls that become one.
pub struct Groups {
    /// The calls that can be fused.
    pub all: Vec<Option<Member>>,
    /// The group of each call.
    pub of_call: Vec<Option<usize>>,
    /// The calls of each group, in order.
    pub members: Vec<Vec<usize>>,
    /// The constants whose elements are all one number, and that no call changes.
    pub numbers: HashMap<ValueId, f64>,
}

/// A group that may still grow.
struct Open {
    members: Vec<usize>,
    instructions: usize,
    /// The values that it reads, and those that it computes.
    reads: Vec<ValueId>,
    computes: Vec<ValueId>,
    cut: Cut,
    domain: Domain,
}

impl Open {
    fn of(at: usize, call: &Call, member: &Member) -> Open {
        let mut reads: Vec<ValueId> = call.reads().collect();
        reads.sort_unstable();
        reads.dedup();
        Open {
            members: vec![at],
            instructions: member.len(),
            reads,
            computes: call.computes().collect(),
            cut: call.cut.clone(),
            domain: member.domain.clone(),
        }
    }

    /// Both together, if they are small enough, run over the same, and both or neither use histories. `self` runs after
    /// `other`.
    fn joined(&self, other: &Open, graph: &Graph, all: &[Option<Member>]) -> Option<Open> {
        let (cut, domain) = (self.cut.with(&other.cut)?, self.domain.joined(&other.domain)?);
        // A program has one type of number. A float becomes an integer only when it is stored.
        let is_integer =
            |id: &ValueId| graph.value(*id).dtype.is_integer() && Some(graph.value(*id).dtype) != domain.dtype;
        if self.reads.iter().any(|id| is_integer(id) && other.computes.contains(id)) {
            return None;
        }
        let mut reads: Vec<ValueId> = self.reads.iter().copied().filter(|id| !other.computes.contains(id)).collect();
        reads.extend(&other.reads);
        reads.sort_unstable();
        reads.dedup();
        let instructions = self.instructions + other.instructions;
        let open = Open {
            members: other.members.iter().chain(&self.members).copied().collect(),
            instructions,
            reads,
            computes: other.computes.iter().chain(&self.computes).copied().collect(),
            cut,
            domain,
        };
        let fits = instructions <= INSTRUCTIONS && open.reads.len() <= TENSORS;
        (fits && open.is_aligned(graph, all)).then_some(open)
    }

    /// Whether each value has the same place in the calls that compute and read it. The numbers of rows could also be read
    /// along a row that is as long as there are rows.
    fn is_aligned(&self, graph: &Graph, all: &[Option<Member>]) -> bool {
        let domain = &self.domain;
        let is_read_well = |call: &Call, kind: Kind, i: usize, arg: &Operand| {
            let Operand::Value(id) = arg else { return true };
            let value = graph.value(*id);
            let from = domain.place(&value.shape);
            let to = call.computes().next().and_then(|id| domain.place(&graph.value(id).shape));
            let to = match (kind, call.op.parameter(i).core) {
                (Kind::View, _) => return matches!(from, Some(Place::Row | Place::Flat)),
                (Kind::Elements, _) => to.unwrap_or(Place::Element),
                (Kind::Rows, Core::Slice) => Place::Element,
                (Kind::Rows, _) => Place::Flat,
            };
            let is_number = value.dtype.is_differentiable();
            if !self.computes.contains(id) {
                return is_number || domain.read(to, &value.shape) == Place::Element;
            }
            let is_each_row = to == Place::Element && from == Some(Place::Row) && kind == Kind::Elements;
            from == Some(to) || is_each_row || value.shape.numel() == 1
        };
        // A truth value or an integer for each row cannot be an output.
        let is_element = |id: ValueId| {
            let value = graph.value(id);
            value.dtype.is_differentiable() || domain.place(&value.shape) == Some(Place::Element)
        };
        let is_well = |at: &usize| {
            let (call, Some(member)) = (&graph.calls[*at], &all[*at]) else { return false };
            let mut args = call.args.iter().enumerate();
            args.all(|(i, arg)| is_read_well(call, member.kind, i, arg)) && call.computes().all(is_element)
        };
        // Without rows, a view costs nothing.
        let is_view = |at: &usize| all[*at].as_ref().is_some_and(|member| member.kind == Kind::View);
        if domain.is_of_rows { self.members.iter().all(is_well) } else { !self.members.iter().any(is_view) }
    }
}

impl Groups {
    pub fn of(graph: &Graph) -> Groups {
        let mut open: Vec<Option<Open>> = Vec::new();
        // For each memory, the groups that read or compute a value there.
        let mut touching: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); graph.memories()];
        let mut touched = HashSet::new();
        let all: Vec<Option<Member>> = graph.calls.iter().map(|call| Member::of(graph, call)).collect();
        let mut groups =
            Groups { all, of_call: vec![None; graph.calls.len()], members: Vec::new(), numbers: numbers(graph) };
        let mut computed_by: Vec<Option<usize>> = vec![None; graph.values.len()];
        for (at, call) in graph.calls.iter().enumerate() {
            let mut joined: SmallVec<[usize; 4]> = SmallVec::new();
            for id in call.reads() {
                joined.extend(computed_by[id.at()].and_then(|at| groups.of_call[at]).filter(|g| open[*g].is_some()));
            }
            joined.sort_unstable();
            joined.dedup();
            let Some(member) = groups.all[at].as_ref() else {
                // The call reads results of these groups, or changes memory that they use, so they must run before it.
                joined.extend(call.changes().flat_map(|id| std::mem::take(&mut touching[graph.memory(id)])));
                joined.iter().for_each(|g| open[*g] = None);
                continue;
            };
            let mut group = Open::of(at, call, member);
            let mut into = None;
            for g in joined {
                let Some(other) = open[g].take() else { continue };
                if let Some(joined) = group.joined(&other, graph, &groups.all) {
                    group = joined;
                    into.get_or_insert(g);
                }
            }
            let into = into.unwrap_or_else(|| {
                open.push(None);
                open.len() - 1
            });
            group.members.sort_unstable();
            for i in &group.members {
                groups.of_call[*i] = Some(into);
            }
            for id in group.reads.iter().chain(&group.computes) {
                let memory = graph.memory(*id);
                if touching[memory].last() != Some(&into) && touched.insert((memory, into)) {
                    touching[memory].push(into);
                }
            }
            call.computes().for_each(|id| computed_by[id.at()] = Some(at));
            groups.members.resize(open.len(), Vec::new());
            groups.members[into] = group.members.clone();
            open[into] = Some(group);
        }
        groups
    }
}

fn numbers(graph: &Graph) -> HashMap<ValueId, f64> {
    let written = graph.written();
    let ids = (0..graph.values.len()).map(|at| ValueId(at as u32)).filter(|id| !written[graph.memory(*id)]);
    ids.filter_map(|id| Some((id, number(graph.value(id))?))).collect()
}

/// The number that all elements of a constant are.
fn number(value: &Value) -> Option<f64> {
    let Source::Constant(t) = &value.source else { return None };
    let is_one = t.numel() > 0 && t.shape().iter().zip(t.strides()).all(|(size, stride)| *size == 1 || *stride == 0);
    let first = || {
        Tensor::over(
            t.storage().clone(),
            Layout { shape: Shape::default(), strides: Default::default(), offset: t.offset() },
            t.dtype(),
        )
    };
    let number = (is_one && t.dtype() != DType::Bool).then(first)?.cast(DType::F64).ok()?.item::<f64>().ok()?;
    // Larger integers may have been rounded.
    (!t.dtype().is_integer() || number.abs() < 2f64.powi(f64::MANTISSA_DIGITS as i32)).then_some(number)
}
