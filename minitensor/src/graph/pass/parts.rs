//! Joins the parts of a tensor.

use std::collections::BTreeMap;

use super::inner::Inner;
use crate::attr::Attr;
use crate::dtype::DType;
use crate::graph::{Call, Cut, Graph, Operand, Source, Value, ValueId};
use crate::op::by_name::names;
use crate::tensor::normalize_axis;

/// A sum of results of `unslice` becomes a `concat` if the parts cover the whole and no two overlap. Such sums are the gradients of a
/// tensor whose parts are used apart from each other, as in `q, k, v = h`. Each element is then added to fewer zeros, which changes at
/// most the sign of a zero.
pub fn join(mut graph: Graph) -> Graph {
    if !graph.calls.iter().any(|call| call.is_of(&names::UNSLICE)) {
        return graph;
    }
    let (inner, written, mut memory) = (Inner::of(&graph), graph.written(), graph.memories() as u32);
    // The values that are sums of parts and that one call reads.
    let mut sums: Vec<Option<Sum>> = graph.values.iter().map(|_| None).collect();
    for call in std::mem::take(&mut graph.calls) {
        let stays = |id: ValueId| !written[graph.memory(id)];
        let sum = Sum::of(&graph, &call, stays, |id| sums[id.at()].take());
        let Some((sum, id)) = sum.zip(call.outputs.first().copied().flatten()) else {
            graph.calls.push(call);
            continue;
        };
        let out = graph.value(id);
        let is_whole = sum.parts.len() > 1 && sum.size == out.shape[sum.axis];
        // The sum of half floats may be an `f32`, which then becomes a half float.
        if is_whole && (sum.base.is_some() || out.dtype == sum.dtype) {
            sum.write(&mut graph, call, id, &mut memory);
        } else {
            sums[id.at()] = inner.computed_by(id).map(|_| sum);
            graph.calls.push(call);
        }
    }
    graph
}

/// A sum of a tensor and of parts of a tensor of the same shape, which is 0 elsewhere.
struct Sum {
    base: Option<ValueId>,
    axis: usize,
    dtype: DType,
    /// For the position at which a part starts, the part, and the position at which it stops.
    parts: BTreeMap<usize, (ValueId, usize)>,
    /// The size of all parts along the axis.
    size: usize,
    cut: Cut,
}

impl Sum {
    /// The sum that a call computes, of values for which `stays` holds. `take` returns the sums that its arguments are.
    fn of(
        graph: &Graph,
        call: &Call,
        stays: impl Fn(ValueId) -> bool,
        mut take: impl FnMut(ValueId) -> Option<Sum>,
    ) -> Option<Sum> {
        let is_plain = call.is_pure() && call.cut.detached.is_empty();
        let ([Some(out)], true) = (&call.outputs[..], is_plain) else { return None };
        let out = graph.value(*out);
        let dtype = |id: ValueId| graph.value(id).dtype;
        let is_addend = |id: ValueId| graph.value(id).shape == out.shape && dtype(id).compute() == out.dtype.compute();
        match call.args[..] {
            [Operand::Value(x)] if call.is_of(&names::UNSLICE) && stays(x) => {
                let [_, Attr::Int(axis), start, stop, Attr::Int(1)] = &call.attrs[..] else { return None };
                let axis = normalize_axis(*axis, out.shape.len()).ok()?;
                let size = out.shape[axis];
                let (start, stop) = (position(start, 0, size)?, position(stop, size, size)?);
                let parts = [(start, (x, stop))].into();
                let sum = Sum { base: None, axis, dtype: out.dtype, parts, size: stop - start, cut: call.cut.clone() };
                (start < stop && dtype(x) == out.dtype).then_some(sum)
            }
            [Operand::Value(x), Operand::Value(y)] if call.is_of(&names::ADD) && is_addend(x) && is_addend(y) => {
                let sum = match (take(x), take(y)) {
                    (Some(a), Some(b)) => a.joined(b),
                    (Some(sum), None) if stays(y) => sum.on(y),
                    (None, Some(sum)) if stays(x) => sum.on(x),
                    _ => None,
                }?;
                let is_same = sum.base.is_none_or(|base| dtype(base) == out.dtype);
                Some(Sum { cut: sum.cut.with(&call.cut)?, ..sum }).filter(|_| is_same)
            }
            [Operand::Value(x)] if call.is_of(&names::ASTYPE) => {
                let sum = take(x).filter(|sum| sum.base.is_none() && sum.dtype == out.dtype)?;
                Some(Sum { cut: sum.cut.with(&call.cut)?, ..sum })
            }
            _ => None,
        }
    }

    /// The sum of both, if no two parts overlap.
    fn joined(self, other: Sum) -> Option<Sum> {
        let (mut all, few) = if self.parts.len() < other.parts.len() { (other, self) } else { (self, other) };
        if (all.axis, all.dtype) != (few.axis, few.dtype) || all.base.is_some() && few.base.is_some() {
            return None;
        }
        for (start, (value, stop)) in few.parts {
            let before = all.parts.range(..stop).next_back();
            if before.is_some_and(|(_, (_, end))| *end > start) {
                return None;
            }
            all.parts.insert(start, (value, stop));
        }
        let cut = all.cut.with(&few.cut)?;
        Some(Sum { base: all.base.or(few.base), size: all.size + few.size, cut, ..all })
    }

    /// The sum with a tensor.
    fn on(self, base: ValueId) -> Option<Sum> {
        self.base.is_none().then_some(Sum { base: Some(base), ..self })
    }

    /// Writes the calls that compute the result of `call`, an addition or a cast. A new value takes the next number of a memory.
    fn write(self, graph: &mut Graph, call: Call, out: ValueId, memory: &mut u32) {
        let Ok(concat) = names::CONCAT.get() else { return graph.calls.push(call) };
        let joined = match self.base {
            None => out,
            Some(_) => {
                let (dtype, source) = (self.dtype, Source::Computed);
                let value = Value { memory: *memory, dtype, source, ..graph.value(out).clone() };
                graph.values.push(value);
                *memory += 1;
                ValueId(graph.values.len() as u32 - 1)
            }
        };
        graph.calls.push(Call {
            op: concat.clone(),
            attrs: [Attr::Int(self.axis as i64)].into_iter().collect(),
            args: self.parts.values().map(|(value, _)| Operand::Value(*value)).collect(),
            outputs: [Some(joined)].into_iter().collect(),
            cut: self.cut.clone(),
            ..call.clone()
        });
        if let Some(base) = self.base {
            let args = [base, joined].map(Operand::Value).into_iter().collect();
            graph.calls.push(Call { args, cut: self.cut, ..call });
        }
    }
}

/// A position that an attribute states, in an axis of some size.
fn position(attr: &Attr, default: usize, size: usize) -> Option<usize> {
    let size = size as i64;
    match attr {
        Attr::None => Some(default),
        Attr::Int(at) => Some(if *at < 0 { at.saturating_add(size) } else { *at }.clamp(0, size) as usize),
        _ => None,
    }
}
