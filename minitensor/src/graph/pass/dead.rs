//! Removes calls whose results are not used.

use std::collections::BTreeSet;

use crate::graph::{Graph, ValueId};

/// Removes calls without effects, and without a result that an output, or a call that remains, uses. A call that changes memory in
/// place remains, and so do all calls that define a value of that memory.
pub fn remove(mut graph: Graph) -> Graph {
    let written = graph.written();
    let mut used = vec![false; graph.values.len()];
    graph.outputs.iter().for_each(|id| used[id.at()] = true);
    let mut removed = BTreeSet::new();
    for (at, call) in graph.calls.iter().enumerate().rev() {
        let is_needed = |id: ValueId| used[id.at()] || written[graph.value(id).memory as usize];
        if !call.has_effects() && !call.computes().any(is_needed) {
            removed.insert(at);
        } else {
            call.reads().for_each(|id| used[id.at()] = true);
        }
    }
    graph.remove_calls(&removed);
    graph
}
