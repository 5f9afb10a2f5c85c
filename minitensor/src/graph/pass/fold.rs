//! Computes calls of constants.

use std::collections::BTreeSet;

use crate::autograd::NoGrad;
use crate::dispatch::dispatch;
use crate::graph::{Call, Graph, Operand, Source};
use crate::op::Arg;
use crate::precision::Wide;
use crate::tensor::Tensor;

/// The most bytes of memory of a folded result. Views of a constant have none.
const BYTES: usize = 1 << 16;

/// Replaces the results of pure calls of constants by constants. Memory that a call changes, or that the graph returns,
/// is not constant.
pub fn constants(mut graph: Graph) -> Graph {
    let written = graph.written();
    let mut is_varying = written.clone();
    graph.outputs.iter().for_each(|id| is_varying[graph.values[id.at()].memory as usize] = true);
    let mut removed = BTreeSet::new();
    for at in 0..graph.calls.len() {
        let call = &graph.calls[at];
        if !call.is_pure() || call.computes().any(|id| is_varying[graph.value(id).memory as usize]) {
            continue;
        }
        let Some(results) = computed(&graph, &written, call) else { continue };
        let call = call.clone();
        for (id, t) in call.outputs.iter().zip(results) {
            if let Some(id) = id {
                graph.values[id.at()].source = Source::Constant(t);
            }
        }
        removed.insert(at);
    }
    graph.remove_calls(&removed);
    graph
}

/// The results of a call whose arguments are constants, in memory that no call changes.
fn computed(graph: &Graph, written: &[bool], call: &Call) -> Option<Vec<Tensor>> {
    if !call.outputs.iter().all(Option::is_some) || call.reads().next().is_none() {
        return None;
    }
    let mut args = Vec::new();
    for arg in &call.args {
        args.push(match arg {
            Operand::None => Arg::None,
            Operand::Number(value) => Arg::Number(*value),
            Operand::Value(id) => match &graph.value(*id).source {
                Source::Constant(t) if !written[graph.value(*id).memory as usize] => Arg::Tensor(t),
                _ => return None,
            },
        });
    }
    let _mode = NoGrad::new();
    let _wide = call.is_wide.then(Wide::new);
    // A call that fails does so in each run.
    let results = dispatch(&call.op, &args, &call.attrs).ok()?.into_vec();
    let is_small = |t: &Tensor| t.numel() * t.dtype().size() <= BYTES || t.overlaps_itself();
    (results.len() == call.outputs.len() && results.iter().all(is_small)).then_some(results)
}
