//! [`Saved`]: a tensor saved for the gradient, which must not change before the gradient uses it.

use super::meta::GradMeta;
use super::node::{Edge, Node};
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use std::sync::Arc;

/// A tensor with the version and history that it had when an op was recorded.
pub struct Saved {
    tensor: Tensor,
    version: u64,
    history: SavedHistory,
}

/// The history of a saved tensor.
enum SavedHistory {
    /// The tensor has its own history.
    Own,
    /// The tensor is an output of the node that saves it. It is saved without history, which would be a reference cycle.
    Output(usize),
    /// The tensor was a view, and is saved apart from its base tensor: a later change of that may have a history that leads
    /// back to this node.
    View(Option<Edge>),
}

impl Saved {
    pub(crate) fn input(tensor: &Tensor, edge: Option<&Edge>) -> Saved {
        let version = tensor.storage().version();
        match (tensor.origin(), edge) {
            (None, _) | (_, Some(Edge::Leaf(_))) => {
                Saved { tensor: tensor.clone(), version, history: SavedHistory::Own }
            }
            (Some(_), edge) => Saved { tensor: tensor.detach(), version, history: SavedHistory::View(edge.cloned()) },
        }
    }

    pub(crate) fn output(tensor: &Tensor, index: usize) -> Saved {
        Saved { tensor: tensor.detach(), version: tensor.storage().version(), history: SavedHistory::Output(index) }
    }

    /// The tensor, with its history.
    pub(crate) fn unpack(&self, node: &Arc<Node>, what: &str) -> Result<Tensor> {
        let version = self.tensor.storage().version();
        if version != self.version {
            return Err(Error::runtime(format!(
                "op '{}': '{what}', which its gradient needs, was changed in place after the forward pass (version {version}, \
                 expected {}); clone() it before the change, or change it out of place",
                node.op().name,
                self.version
            )));
        }
        let computed_by = |node: &Arc<Node>, index| {
            self.tensor.detach().with_grad_meta(GradMeta::computed_by(node.clone(), index, version))
        };
        Ok(match &self.history {
            // An output of a dtype without derivatives gets no history, or a gradient of this gradient would flow through it.
            SavedHistory::Output(index) if self.tensor.dtype().is_differentiable() => computed_by(node, *index),
            SavedHistory::View(Some(Edge::Node(node, index))) => computed_by(node, *index),
            _ => self.tensor.clone(),
        })
    }
}
