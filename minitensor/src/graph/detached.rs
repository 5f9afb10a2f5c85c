//! [`DetachedApart`]: a recorded function whose detached values are constants, which is the function that its gradient
//! differentiates.

use super::ir::{Call, Graph, Operand, Source, ValueId};
use super::record::Recording;
use crate::autograd::NoGrad;
use crate::dispatch::dispatch;
use crate::error::{Error, Result};
use crate::op::{Arg, OpRef};
use crate::tensor::Tensor;

/// A function of tensors in which the detached values are those of the call that was recorded.
pub(crate) struct DetachedApart {
    graph: Graph,
    /// The tensor of each value when it was recorded. Only those that no call computed are read.
    held: Vec<Tensor>,
    /// For each result, whether it is detached.
    is_detached: Vec<bool>,
    /// For each call of an op whose program detaches values: the op that computes these from the second half of its inputs.
    apart: Vec<Option<OpRef>>,
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
        let apart = |call: &Call| {
            call.op.with_detached_apart(&call.attrs, |i| !matches!(call.args.get(i), None | Some(Operand::None)))
        };
        let apart = graph.calls.iter().map(apart).collect::<Result<Vec<_>>>()?;
        let detaches =
            is_detached.contains(&true) || apart.iter().any(Option::is_some) || graph.calls.iter().any(is_cut);
        if !graph.calls.iter().all(Call::is_pure) || !detaches {
            return Ok(None);
        }
        let mut apart = DetachedApart { graph, held: recorder.held, is_detached, apart, constants: Vec::new() };
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
            // The random numbers are those of the recording.
            Source::Captured(_) | Source::Key(..) => Ok(Some(held.clone())),
            Source::Constant(t) => Ok(Some(t.clone())),
            Source::Computed => Ok(None),
            _ => Err(Error::runtime("the function reads a gradient")),
        };
        let mut values = self.graph.values.iter().zip(&self.held).map(source).collect::<Result<Vec<_>>>()?;
        let has_constants = !self.constants.is_empty();
        for (call, apart) in self.graph.calls.iter().zip(&self.apart) {
            let apart = apart.as_ref().filter(|_| has_constants);
            let tensor = |(i, operand): (usize, &Operand)| {
                let Operand::Value(id) = operand else { return Ok(None) };
                let is_constant = i >= call.args.len() || call.cut.detached.contains(&i);
                found(if is_constant && has_constants { &self.constants } else { &values }, *id).map(Some)
            };
            let operands = || call.args.iter().chain(apart.iter().flat_map(|_| &call.args));
            let tensors = operands().enumerate().map(tensor).collect::<Result<Vec<Option<Tensor>>>>()?;
            let args: Vec<Arg<'_>> = operands()
                .zip(&tensors)
                .map(
                    |(operand, t)| {
                        if let Operand::Number(value) = operand { Arg::Number(*value) } else { t.as_ref().into() }
                    },
                )
                .collect();
            for (id, t) in call.outputs.iter().zip(dispatch(apart.unwrap_or(&call.op), &args, &call.attrs)?.into_vec())
            {
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
