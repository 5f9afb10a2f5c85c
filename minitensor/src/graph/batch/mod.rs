//! Batches: a function of one example, applied to all examples of a batch.
//!
//! The function is recorded with one example. Then each recorded call is made for the whole batch: by one call of the op if
//! there is a rule for that ([`rule`], [`fold`]), otherwise by one call for each example ([`replay`]). These are calls like any other, so
//! gradients, graphs and other batches contain them. [`histories`] tells which of them have a gradient.

mod fold;
mod histories;
mod replay;
mod rule;

pub(super) use histories::{Histories, History};
pub use replay::Replay;

use std::sync::Arc;

use super::record::Recording;
use crate::autograd::{GradMeta, is_grad_enabled};
use crate::error::{Error, Result};
use crate::random;
use crate::tensor::{Layout, Shape, Tensor};

/// The random numbers of the examples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Randomness {
    /// Taking random numbers is an error.
    Error,
    /// Each example has other numbers.
    Different,
    /// All examples have the same numbers.
    Same,
}

/// The recording of a function of one example.
pub struct Batch {
    recording: Option<Recording>,
    tensors: Vec<Tensor>,
    size: usize,
    /// The random numbers of the recording, which are those of no example.
    _random: random::Own,
}

impl Batch {
    /// Starts to record. The first axis of the tensors has one element for each of the `size` examples. Also returns the
    /// arguments of the function: the first example, or zeros if there is none.
    ///
    /// # Errors
    /// If there is no memory for the example.
    pub fn start(tensors: Vec<Tensor>, size: usize) -> Result<(Batch, Vec<Tensor>)> {
        let (recording, examples) = Recording::of_example(|| tensors.iter().map(|t| example(t, size)).collect())?;
        Ok((Batch { recording: Some(recording), tensors, size, _random: random::Own::copied() }, examples))
    }

    /// Ends the recording. `outputs` are the results of the function.
    ///
    /// # Errors
    /// If the function did something that a batch cannot do.
    pub fn finish(mut self, outputs: &[Tensor], randomness: Randomness) -> Result<Replay> {
        let recording = self.recording.take().ok_or_else(|| Error::runtime("the recording has ended"))?;
        let stored = restore_gradients(&recording);
        recording.with(|r| r.failure.take()).map_or(Ok(()), Err)?;
        if let Some(shape) = stored {
            return Err(Error::runtime(format!(
                "the function of mt.vmap stores a gradient in a tensor of shape {shape}, which is not its own, as by backward(); \
                 use mt.grad, and return the gradient"
            )));
        }
        let results = outputs.iter().map(|t| recording.with(|r| r.handle(t))).collect::<Result<_>>()?;
        Replay::new(recording.end(), std::mem::take(&mut self.tensors), results, self.size, randomness)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(recording) = &self.recording {
            restore_gradients(recording);
        }
    }
}

/// One example of a batch, in memory of its own.
fn example(t: &Tensor, size: usize) -> Result<Tensor> {
    let Layout { shape, strides, offset } = t.layout();
    let shape = shape.iter().skip(1).copied().collect();
    let copy = match size {
        0 => Tensor::zeros(shape, t.dtype(), t.device())?,
        _ => t.with_layout(Layout { shape, strides: strides[1..].into(), offset: *offset }).copied()?,
    };
    if t.requires_grad() && is_grad_enabled() { copy.with_requires_grad() } else { Ok(copy) }
}

/// Undoes changes of accumulated gradients: they are those of one example. Returns the shape of one that changed and that
/// belongs to a tensor from outside of the function.
fn restore_gradients(recording: &Recording) -> Option<Shape> {
    let (all, leaves) = recording.with(|r| (std::mem::take(&mut r.gradients), std::mem::take(&mut r.leaves)));
    let mut stored = None;
    for (meta, before) in all {
        let is_own = |leaf: &Arc<GradMeta>| Arc::ptr_eq(leaf, &meta);
        let now = meta.grad();
        let is_same = match (&before, &now) {
            (Some(before), Some(now)) => before.is(now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if !is_same && !leaves.iter().any(is_own) {
            stored = now.or_else(|| before.clone()).map(|t| t.shape().clone());
            meta.set_grad(before);
        }
    }
    stored
}
