//! [`Saved`]: a tensor kept for the gradient, which must not have changed when it is used.

use super::meta::GradMeta;
use super::node::Node;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use std::sync::Arc;

/// A tensor as it was when an op was recorded.
pub struct Saved {
    tensor: Tensor,
    version: u64,
    /// Its position, for an output of the node that saves it: kept without history, which would be a cycle.
    output: Option<usize>,
}

impl Saved {
    pub(crate) fn input(tensor: &Tensor) -> Saved {
        Saved { tensor: tensor.clone(), version: tensor.storage().version(), output: None }
    }

    pub(crate) fn output(tensor: &Tensor, index: usize) -> Saved {
        Saved { tensor: tensor.detach(), version: tensor.storage().version(), output: Some(index) }
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
        Ok(match self.output {
            // What holds no derivatives has no history: a gradient of this gradient would go through it.
            Some(index) if self.tensor.dtype().is_differentiable() => {
                let meta = GradMeta::computed_by(node.clone(), index, version);
                self.tensor.detach().with_grad_meta(meta)
            }
            _ => self.tensor.clone(),
        })
    }
}
