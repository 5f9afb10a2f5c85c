//! Removes calls whose results are not used.

use crate::graph::Graph;

/// Removes pure calls without a result that an output, or a call that remains, uses. A call that changes memory in place
/// remains, and so do all calls that define a value of that memory.
pub fn remove(mut graph: Graph) -> Graph {
    let written = graph.written();
    let mut used = vec![false; graph.values.len()];
    graph.outputs.iter().for_each(|id| used[id.at()] = true);
    let mut keep = vec![false; graph.calls.len()];
    for (at, call) in graph.calls.iter().enumerate().rev() {
        let is_needed = |id: crate::graph::ValueId| used[id.at()] || written[graph.value(id).memory as usize];
        keep[at] = !call.is_pure() || call.computes().any(is_needed);
        if keep[at] {
            call.reads().for_each(|id| used[id.at()] = true);
        }
    }
    let mut keep = keep.into_iter();
    graph.calls.retain(|_| keep.next().unwrap_or(true));
    graph
}
