//! [`Inner`]: values that are used once.

use crate::graph::{Call, Graph, ValueId};

/// For each value, the call that computes it, if nothing but one call reads the value, and no call changes it.
pub struct Inner(Vec<Option<usize>>);

impl Inner {
    pub fn of(graph: &Graph) -> Inner {
        let mut readers = vec![0; graph.values.len()];
        graph.calls.iter().flat_map(Call::reads).for_each(|id| readers[id.at()] += 1);
        graph.outputs.iter().for_each(|id| readers[id.at()] += 2);
        let written = graph.written();
        let mut computed_by = vec![None; graph.values.len()];
        for (at, call) in graph.calls.iter().enumerate() {
            if let [Some(id)] = call.outputs[..]
                && readers[id.at()] == 1
                && !written[graph.memory(id)]
            {
                computed_by[id.at()] = Some(at);
            }
        }
        Inner(computed_by)
    }

    /// The call that computes a value.
    pub fn computed_by(&self, id: ValueId) -> Option<usize> {
        self.0[id.at()]
    }
}
