//! Replaces calls that compute what an earlier call has computed.

use std::collections::{BTreeSet, HashMap};

use crate::graph::{Graph, Operand, ValueId};
use crate::op::Property;

/// Two pure calls of one op with the same arguments and attributes have the same results. This holds only for memory
/// that no call changes in place. Results of the graph stay apart, because the caller may change one of them.
pub fn remove(mut graph: Graph) -> Graph {
    let written = graph.written();
    let memory = |graph: &Graph, id: ValueId| graph.value(id).memory as usize;
    let mut is_result = vec![false; written.len()];
    for id in &graph.outputs {
        is_result[memory(&graph, *id)] = true;
    }
    let mut same: Vec<ValueId> = (0..graph.values.len()).map(|i| ValueId(i as u32)).collect();
    let mut known: HashMap<String, Vec<usize>> = HashMap::new();
    let mut removed = BTreeSet::new();
    for at in 0..graph.calls.len() {
        for arg in &mut graph.calls[at].args {
            if let Operand::Value(id) = arg {
                *id = same[id.at()];
            }
        }
        let call = &graph.calls[at];
        let is_fixed = |id: ValueId| !written[memory(&graph, id)];
        let is_apart = |id: ValueId| is_fixed(id) && !is_result[memory(&graph, id)];
        if !call.is_pure() || !call.reads().all(is_fixed) || !call.computes().all(is_apart) {
            continue;
        }
        // As texts: -0.0 equals 0.0.
        let mut args = call.args.clone();
        if call.op.properties.contains(&Property::Symmetric) {
            args.sort_by_cached_key(|arg| format!("{arg:?}"));
        }
        let key = format!("{} {args:?} {:?}", call.op.name, call.attrs);
        let earlier = known.entry(key).or_default();
        let is_same = |other: &&usize| {
            let other = &graph.calls[**other];
            std::ptr::eq(&*other.op, &*call.op)
                && other.is_wide == call.is_wide
                && other.cut == call.cut
                && call.outputs.iter().zip(&other.outputs).all(|(a, b)| a.is_none() || b.is_some())
        };
        match earlier.iter().find(is_same) {
            Some(other) => {
                let pairs = call.outputs.iter().zip(&graph.calls[*other].outputs);
                for (this, other) in pairs.filter_map(|(a, b)| a.zip(*b)) {
                    same[this.at()] = other;
                }
                removed.insert(at);
            }
            None => earlier.push(at),
        }
    }
    graph.remove_calls(&removed);
    graph
}
