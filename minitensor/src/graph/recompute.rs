//! The choice between saving a tensor for the gradient, and computing it again.

use std::collections::VecDeque;

use super::ir::{Call, Graph, Source, ValueId};
use super::pass::{epilogue, fuse};

/// The most calls of a graph for which there is a choice.
const MOST: usize = 4096;
/// A capacity that no cut contains.
const UNLIMITED: u64 = u64::MAX / 4;

/// Finds the tensors of the lowest cost from which element ops compute the `needed` values. Returns these tensors, and
/// the calls. Values that are lost cannot be saved.
///
/// Element ops are fused with the calls that use them, so computing them again takes less time than writing and reading
/// memory. The tensors are a minimum cut between the values that only other calls compute, and the needed ones.
pub fn choose(graph: &Graph, needed: Vec<ValueId>, is_lost: &[bool]) -> (Vec<ValueId>, Vec<Call>) {
    if graph.calls.len() > MOST || needed.is_empty() {
        return (needed, Vec::new());
    }
    let written = graph.written();
    let is_fixed = |id: ValueId| !written[graph.value(id).memory as usize];
    let is_cheap = |call: &Call| fuse::is_fusible(graph, call) && call.reads().chain(call.computes()).all(is_fixed);
    let cheap: Vec<usize> = (0..graph.calls.len()).filter(|at| is_cheap(&graph.calls[*at])).collect();
    let mut is_cheap = vec![false; graph.values.len()];
    cheap.iter().flat_map(|at| graph.calls[*at].computes()).for_each(|id| is_cheap[id.at()] = true);
    let is_passed_on = epilogue::passed_on(graph);
    let mut network = Network::new(graph.values.len());
    for (at, value) in graph.values.iter().enumerate() {
        let bytes = (value.shape.numel() * value.dtype.size()) as u64 + 1;
        // The caller keeps arguments anyway. A value that is computed only for the gradient must also be written.
        let cost = match value.source {
            _ if is_lost[at] => UNLIMITED,
            Source::Constant(_) if is_fixed(ValueId(at as u32)) => 0,
            Source::Computed if is_cheap[at] || is_passed_on[at] => 3 * bytes,
            Source::Computed => 2 * bytes,
            _ => bytes,
        };
        network.edge(Network::entry(at), Network::exit(at), cost);
        if !is_cheap[at] {
            network.edge(Network::SOURCE, Network::entry(at), UNLIMITED);
        }
    }
    for call in cheap.iter().map(|at| &graph.calls[*at]) {
        for (from, to) in call.reads().flat_map(|from| call.computes().map(move |to| (from, to))) {
            network.edge(Network::exit(from.at()), Network::entry(to.at()), UNLIMITED);
        }
    }
    needed.iter().for_each(|id| network.edge(Network::exit(id.at()), Network::SINK, UNLIMITED));
    network.saturate();
    let before = network.before_sink();
    let is_saved = |at: usize| before[Network::exit(at)] && !before[Network::entry(at)];
    let mut is_wanted = vec![false; graph.values.len()];
    needed.iter().for_each(|id| is_wanted[id.at()] = true);
    let mut calls = Vec::new();
    for call in cheap.iter().rev().map(|at| &graph.calls[*at]) {
        if call.computes().any(|id| is_wanted[id.at()] && !is_saved(id.at())) {
            call.reads().for_each(|id| is_wanted[id.at()] = true);
            calls.push(call.clone());
        }
    }
    calls.reverse();
    let is_constant = |id: ValueId| is_fixed(id) && matches!(graph.value(id).source, Source::Constant(_));
    let is_kept = |id: &ValueId| is_wanted[id.at()] && is_saved(id.at()) && !is_constant(*id);
    ((0..graph.values.len()).map(|at| ValueId(at as u32)).filter(is_kept).collect(), calls)
}

/// A flow network (Ford and Fulkerson, 1956). Each value is an edge from its entry to its exit.
struct Network {
    edges: Vec<Edge>,
    /// The edges of each node. Edge `e ^ 1` is the reverse of edge `e`.
    of_node: Vec<Vec<usize>>,
}

struct Edge {
    to: usize,
    left: u64,
}

impl Network {
    const SOURCE: usize = 0;
    const SINK: usize = 1;

    fn new(values: usize) -> Network {
        Network { edges: Vec::new(), of_node: vec![Vec::new(); 2 + 2 * values] }
    }

    fn entry(value: usize) -> usize {
        2 + 2 * value
    }

    fn exit(value: usize) -> usize {
        3 + 2 * value
    }

    fn edge(&mut self, from: usize, to: usize, capacity: u64) {
        for (from, to, left) in [(from, to, capacity), (to, from, 0)] {
            self.of_node[from].push(self.edges.len());
            self.edges.push(Edge { to, left });
        }
    }

    /// Sends as much as possible from the source to the sink, along shortest paths.
    fn saturate(&mut self) {
        loop {
            let mut reached: Vec<Option<usize>> = vec![None; self.of_node.len()];
            let mut waiting = VecDeque::from([Self::SOURCE]);
            while let Some(node) = waiting.pop_front() {
                for e in &self.of_node[node] {
                    let Edge { to, left } = self.edges[*e];
                    if left > 0 && to != Self::SOURCE && reached[to].is_none() {
                        reached[to] = Some(*e);
                        waiting.push_back(to);
                    }
                }
            }
            let path: Vec<usize> =
                std::iter::successors(reached[Self::SINK], |e| reached[self.edges[e ^ 1].to]).collect();
            let Some(flow) = path.iter().map(|e| self.edges[*e].left).min() else { return };
            for e in path {
                self.edges[e].left -= flow;
                self.edges[e ^ 1].left += flow;
            }
        }
    }

    /// The nodes from which more can reach the sink. The cut between them and the others is the minimum cut that is
    /// nearest to the sink, so that the fewest calls run again.
    fn before_sink(&self) -> Vec<bool> {
        let mut reaches = vec![false; self.of_node.len()];
        reaches[Self::SINK] = true;
        let mut waiting = vec![Self::SINK];
        while let Some(node) = waiting.pop() {
            for e in &self.of_node[node] {
                let from = self.edges[*e].to;
                if self.edges[e ^ 1].left > 0 && !std::mem::replace(&mut reaches[from], true) {
                    waiting.push(from);
                }
            }
        }
        reaches
    }
}
