//! What histories reach: leaves, and the nodes between outputs and leaves.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::node::{Edge, Place};
use crate::error::Result;
use crate::tensor::Tensor;

/// The edges to the origins of tensors that have a history.
pub(super) fn edges(all: &[Tensor]) -> Result<Vec<Edge>> {
    Ok(all.iter().map(Tensor::edge).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn places(edges: &[Edge]) -> HashSet<Place> {
    edges.iter().map(Edge::place).collect()
}

/// Whether the histories of `outputs` reach a leaf that is not one of `known`.
pub fn reaches_others(outputs: &[Tensor], known: &[Tensor]) -> Result<bool> {
    let known = places(&edges(known)?);
    let (mut open, mut seen) = (edges(outputs)?, HashSet::new());
    while let Some(edge) = open.pop() {
        match &edge {
            Edge::Leaf(_) if !known.contains(&edge.place()) => return Ok(true),
            Edge::Leaf(_) => {}
            Edge::Node(node, _) => {
                if seen.insert(Arc::as_ptr(node)) {
                    open.extend(node.edges.iter().flatten().cloned());
                }
            }
        }
    }
    Ok(false)
}

/// Whether `output` was computed from `targets`, by calls recorded since a sequence number.
pub(super) fn depends(since: u64, output: &Tensor, targets: &[Tensor]) -> Result<bool> {
    let targets = edges(targets)?;
    Ok(output.edge()?.is_some_and(|edge| match &edge {
        Edge::Leaf(_) => places(&targets).contains(&edge.place()),
        Edge::Node(node, _) => dependent(since, std::slice::from_ref(&edge), &targets).contains(&node.sequence),
    }))
}

/// The nodes, recorded since a sequence number, through which `outputs` depend on `targets`, by sequence number.
pub(super) fn dependent(since: u64, outputs: &[Edge], targets: &[Edge]) -> HashSet<u64> {
    let targets = places(targets);
    let (mut nodes, mut waiting) = (BTreeMap::new(), outputs.to_vec());
    while let Some(edge) = waiting.pop() {
        let Edge::Node(node, _) = edge else { continue };
        if node.sequence >= since && nodes.insert(node.sequence, node.clone()).is_none() {
            waiting.extend(node.edges.iter().flatten().cloned());
        }
    }
    // A node is younger than those on which it depends.
    let mut found = HashSet::new();
    for (sequence, node) in nodes {
        let depends = |edge: &Edge| {
            targets.contains(&edge.place()) || matches!(edge, Edge::Node(before, _) if found.contains(&before.sequence))
        };
        if node.edges.iter().flatten().any(depends) {
            found.insert(sequence);
        }
    }
    found
}
