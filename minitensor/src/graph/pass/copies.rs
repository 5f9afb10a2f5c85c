//! Removes copies of tensors.

use std::collections::{BTreeSet, HashSet};

use super::fuse;
use crate::graph::{Graph, Operand, Source, ValueId};

/// `clone(x)` is `x` if no call changes either, and it is not a result. So is an output of an element op that is `x`, such as
/// the gradient of an addition. A copy that is a result is replaced by a tensor that a call computes into memory of its own,
/// and that is no result itself.
pub fn remove(mut graph: Graph) -> Graph {
    let written = graph.written();
    let mut values = vec![0; written.len()];
    graph.values.iter().for_each(|v| values[v.memory as usize] += 1);
    let is_written = |graph: &Graph, id: ValueId| written[graph.value(id).memory as usize];
    // Computed into memory of its own, which no call changes.
    let is_own = |graph: &Graph, id: ValueId| {
        let value = graph.value(id);
        matches!(value.source, Source::Computed) && values[value.memory as usize] == 1 && !is_written(graph, id)
    };
    let mut outputs: HashSet<ValueId> = graph.outputs.iter().copied().collect();
    let mut same: Vec<ValueId> = (0..graph.values.len()).map(|i| ValueId(i as u32)).collect();
    let mut removed = BTreeSet::new();
    for at in 0..graph.calls.len() {
        for arg in &mut graph.calls[at].args {
            if let Operand::Value(id) = arg {
                *id = same[id.at()];
            }
        }
        let call = &graph.calls[at];
        let is_cut = call.cut.is_off && call.cut.has_history;
        for (k, x) in fuse::copied(&graph, call).into_iter().enumerate().filter(|_| !is_cut) {
            let (Some(x), Some(copy)) = (x, graph.calls[at].outputs[k]) else { continue };
            let (from, to) = (graph.value(x), graph.value(copy));
            let is_alike = from.shape == to.shape && from.dtype == to.dtype;
            // Two results are two tensors, and no result is an argument.
            let is_apart = !outputs.contains(&copy) || is_own(&graph, x) && !outputs.contains(&x);
            // A view of the copy could be a result.
            let has_views = values[to.memory as usize] > 1;
            if is_alike && is_apart && !has_views && !is_written(&graph, x) && !is_written(&graph, copy) {
                same[copy.at()] = x;
                if outputs.remove(&copy) {
                    outputs.insert(x);
                }
                graph.calls[at].outputs[k] = None;
            }
        }
        if graph.calls[at].outputs.iter().all(Option::is_none) && !graph.calls[at].op.outputs.is_empty() {
            removed.insert(at);
        }
    }
    graph.outputs.iter_mut().for_each(|id| *id = same[id.at()]);
    graph.remove_calls(&removed);
    graph
}
