//! [`PortableGraph`]: a recorded function for another process.

use super::ir::{Graph, ValueId};
use super::record::Recording;
use super::verify;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// A recorded function without passes, and without a gradient: another process computes it by the ops that are called.
pub struct PortableGraph {
    /// The graph.
    pub graph: Graph,
    /// The tensor of each value.
    pub held: Vec<Tensor>,
    /// For each result, whether it lacks the history of its value, as after `detach()`.
    pub detached: Vec<bool>,
}

impl PortableGraph {
    /// Ends a recording that [`Recording::start_portable`] began. `outputs` are the results of the function.
    ///
    /// # Errors
    /// If the function did something that a graph cannot repeat, or that depends on this process.
    pub fn new(recording: Recording, outputs: &[Tensor]) -> Result<PortableGraph> {
        recording.with(|r| r.failure.take()).map_or(Ok(()), Err)?;
        let outputs = outputs
            .iter()
            .map(|t| {
                let id = recording.with(|r| r.operand(t))?;
                let lacks = !t.requires_grad() && recording.with(|r| r.held[id.at()].requires_grad());
                Ok((id, lacks))
            })
            .collect::<Result<Vec<(ValueId, bool)>>>()?;
        let recorder = recording.end();
        if !recorder.gradients.is_empty() {
            return Err(Error::runtime(
                "the function reads or stores the gradients of tensors, as by backward(), so it cannot be saved; save a function that \
                 only computes results, and differentiate it after loading",
            ));
        }
        if recorder.numbers > 0 {
            return Err(Error::runtime(
                "the function makes a step of an optimizer, so it cannot be saved; save the model, and the state of the optimizer",
            ));
        }
        let (ids, detached) = outputs.into_iter().unzip();
        let graph = Graph { outputs: ids, ..recorder.graph };
        verify(&graph)?;
        Ok(PortableGraph { graph, held: recorder.held, detached })
    }
}
