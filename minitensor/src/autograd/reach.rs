//! What histories reach: leaves, and the nodes between outputs and leaves.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::node::Edge;
use crate::error::Result;
use crate::tensor::Tensor;

/// The edges to the origins of tensors that have a history.
pub(super) fn edges(all: &[Tensor]) -> Result<Vec<Edge>> {
    Ok(all.iter().map(Tensor::edge).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Whether an edge leads to one of the leaves.
fn is_one_of(edge: &Edge, leaves: &[Edge]) -> bool {
    let Edge::Leaf(leaf) = edge else { return false };
    leaves.iter().any(|other| matches!(other, Edge::Leaf(other) if Arc::ptr_eq(other, leaf)))
}

/// Whether the histories of `outputs` reach a leaf that is not one of `known`.
pub fn reaches_others(outputs: &[Tensor], known: &[Tensor]) -> Result<bool> {
    let known = edges(known)?;
    let (mut open, mut seen) = (edges(outputs)?, HashSet::new());
    while let Some(edge) = open.pop() {
        match &edge {
            Edge::Leaf(_) if !is_one_of(&edge, &known) => return Ok(true),
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

/// Whether `output` was computed from the leaves `targets`, by calls recorded since a sequence number.
pub(super) fn depends(since: u64, output: &Tensor, targets: &[Tensor]) -> Result<bool> {
    let targets = edges(targets)?;
    Ok(output.edge()?.is_some_and(|edge| match &edge {
        Edge::Leaf(_) => is_one_of(&edge, &targets),
        Edge::Node(node, _) => dependent(since, std::slice::from_ref(&edge), &targets).contains(&node.sequence),
    }))
}

/// The nodes, recorded since a sequence number, through which `outputs` depend on the leaves `targets`, by sequence number.
pub(super) fn dependent(since: u64, outputs: &[Edge], targets: &[Edge]) -> HashSet<u64> {
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
        let depends = |edge: &Edge| match edge {
            Edge::Node(before, _) => found.contains(&before.sequence),
            Edge::Leaf(_) => is_one_of(edge, targets),
        };
        if node.edges.iter().flatten().any(depends) {
            found.insert(sequence);
        }
    }
    found
}
