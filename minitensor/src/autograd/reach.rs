//! Which leaves a history reaches.

use std::collections::HashSet;
use std::sync::Arc;

use super::meta::GradMeta;
use super::node::Edge;
use crate::error::Result;
use crate::tensor::Tensor;

/// Whether the histories of `outputs` reach a leaf that is not one of `known`.
pub fn reaches_others(outputs: &[Tensor], known: &[Tensor]) -> Result<bool> {
    let edges = |all: &[Tensor]| -> Result<Vec<Edge>> {
        Ok(all.iter().map(Tensor::edge).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    };
    let known: Vec<Edge> = edges(known)?;
    let is_known =
        |leaf: &Arc<GradMeta>| known.iter().any(|edge| matches!(edge, Edge::Leaf(other) if Arc::ptr_eq(other, leaf)));
    let (mut open, mut seen) = (edges(outputs)?, HashSet::new());
    while let Some(edge) = open.pop() {
        match edge {
            Edge::Leaf(leaf) if !is_known(&leaf) => return Ok(true),
            Edge::Leaf(_) => {}
            Edge::Node(node, _) => {
                if seen.insert(Arc::as_ptr(&node)) {
                    open.extend(node.edges.iter().flatten().cloned());
                }
            }
        }
    }
    Ok(false)
}
