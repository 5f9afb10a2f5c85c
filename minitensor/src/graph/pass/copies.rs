//! Removes copies of tensors that nothing else uses.

use std::collections::BTreeSet;

use crate::graph::{Graph, Operand, Source, ValueId};
use crate::op::by_name::names;

/// `clone(x)` is `x` if a call computes `x` into memory of its own, no other call reads or changes it, and it is not a result.
pub fn remove(mut graph: Graph) -> Graph {
    let Ok(clone) = names::CLONE.get() else { return graph };
    let written = graph.written();
    let mut values = vec![0; written.len()];
    graph.values.iter().for_each(|v| values[v.memory as usize] += 1);
    let mut uses = vec![0; graph.values.len()];
    graph
        .calls
        .iter()
        .flat_map(|call| call.reads())
        .chain(graph.outputs.iter().copied())
        .for_each(|id| uses[id.at()] += 1);
    let mut same: Vec<ValueId> = (0..graph.values.len()).map(|i| ValueId(i as u32)).collect();
    let mut removed = BTreeSet::new();
    for at in 0..graph.calls.len() {
        for arg in &mut graph.calls[at].args {
            if let Operand::Value(id) = arg {
                *id = same[id.at()];
            }
        }
        let call = &graph.calls[at];
        if let ([Operand::Value(x)], [Some(copy)]) = (&call.args[..], &call.outputs[..])
            && std::ptr::eq(&*call.op, &**clone)
            && call.cut.is_nothing()
        {
            let value = graph.value(*x);
            let is_own = matches!(value.source, Source::Computed) && values[value.memory as usize] == 1;
            if is_own
                && uses[x.at()] == 1
                && !written[value.memory as usize]
                && !written[graph.value(*copy).memory as usize]
            {
                same[copy.at()] = *x;
                uses[x.at()] = uses[copy.at()];
                removed.insert(at);
            }
        }
    }
    graph.outputs.iter_mut().for_each(|id| *id = same[id.at()]);
    graph.remove_calls(&removed);
    graph
}
