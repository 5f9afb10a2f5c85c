//! [`DetachedApart`]: a recorded function whose detached values are constants, which is the function that its gradient
//! differentiates.

use super::ir::{Call, Graph, Operand, Source, ValueId};
use super::record::Recording;
use crate::autograd::NoGrad;
use crate::dispatch::dispatch;
use crate::error::{Error, Result};
use crate::op::Arg;
use crate::tensor::Tensor;

/// A function of tensors in which the detached values are those of the call that was recorded.
pub(crate) struct DetachedApart {
    graph: Graph,
    /// The tensor of each value when it was recorded. Only those that no call computed are read.
    held: Vec<Tensor>,
    /// For each result, whether it is detached.
    is_detached: Vec<bool>,
    /// The values of the recorded call.
    constants: Vec<Option<Tensor>>,
}

impl DetachedApart {
    /// Records a function of `inputs`, at least one of which requires a gradient. `None` if it detaches nothing, or has effects.
    ///
    /// # Errors
    /// Those of the function.
    pub fn of(inputs: &[Tensor], function: impl FnOnce() -> Result<Vec<Tensor>>) -> Result<Option<DetachedApart>> {
        let recording = Recording::start(inputs)?;
        let results = function()?;
        let ids = results.iter().map(|t| recording.with(|r| r.operand(t))).collect::<Result<Vec<ValueId>>>()?;
        let is_detached: Vec<bool> =
            ids.iter().zip(&results).map(|(id, t)| recording.with(|r| r.is_detached(*id, t))).collect();
        let recorder = recording.end();
        let graph = Graph { outputs: ids, ..recorder.graph };
        let is_cut = |call: &Call| !call.cut.detached.is_empty();
        if !graph.is_pure() || !(is_detached.contains(&true) || graph.calls.iter().any(is_cut)) {
            return Ok(None);
        }
        let mut apart = DetachedApart { graph, held: recorder.held, is_detached, constants: Vec::new() };
        let _quiet = NoGrad::new();
        let inputs: Vec<Tensor> = inputs.iter().map(Tensor::detach).collect();
        apart.constants = apart.values(&inputs)?;
        Ok(Some(apart))
    }

    /// Calls the function.
    ///
    /// # Errors
    /// The error of a call.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let values = self.values(inputs)?;
        let of =
            |(id, is_detached): (&ValueId, &bool)| found(if *is_detached { &self.constants } else { &values }, *id);
        self.graph.outputs.iter().zip(&self.is_detached).map(of).collect()
    }

    /// All values. Without constants, nothing is constant.
    fn values(&self, inputs: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let source = |(value, held): (&super::Value, &Tensor)| match &value.source {
            Source::Input(at) => Ok(Some(inputs[*at].clone())),
            Source::Captured(_) => Ok(Some(held.clone())),
            Source::Constant(t) => Ok(Some(t.clone())),
            Source::Computed => Ok(None),
            _ => Err(Error::runtime("the function reads a gradient")),
        };
        let mut values = self.graph.values.iter().zip(&self.held).map(source).collect::<Result<Vec<_>>>()?;
        for call in &self.graph.calls {
            let tensor = |(i, operand): (usize, &Operand)| {
                let Operand::Value(id) = operand else { return Ok(None) };
                let is_constant = call.cut.detached.contains(&i) && !self.constants.is_empty();
                found(if is_constant { &self.constants } else { &values }, *id).map(Some)
            };
            let tensors = call.args.iter().enumerate().map(tensor).collect::<Result<Vec<Option<Tensor>>>>()?;
            let args: Vec<Arg<'_>> = call
                .args
                .iter()
                .zip(&tensors)
                .map(
                    |(operand, t)| {
                        if let Operand::Number(value) = operand { Arg::Number(*value) } else { t.as_ref().into() }
                    },
                )
                .collect();
            for (id, t) in call.outputs.iter().zip(dispatch(&call.op, &args, &call.attrs)?.into_vec()) {
                if let Some(id) = id {
                    values[id.at()] = Some(t);
                }
            }
        }
        Ok(values)
    }
}

fn found(values: &[Option<Tensor>], id: ValueId) -> Result<Tensor> {
    values[id.at()].clone().ok_or_else(|| Error::runtime("the graph lacks a value"))
}
