//! [`gradients`]: the gradient of a call, computed by calling an op, so that a graph can contain it.

use std::sync::Arc;

use smallvec::SmallVec;

use super::backward_call::BackwardCall;
use super::node::{Edge, Meta, Node};
use super::saved::Saved;
use super::written;
use crate::attr::Attr;
use crate::dispatch::dispatch;
use crate::error::{Error, Result};
use crate::op::{Arg, Backward, Dynamic, OpRef, internal_op};
use crate::tensor::Tensor;

/// Computes the gradients by an op that takes the cotangents and the saved tensors. If the gradient function reads elements, a
/// graph contains the call of this op, otherwise the calls that the function makes.
pub(super) fn gradients(node: &Arc<Node>, cotangents: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let saved: Vec<Option<Tensor>> = node.with_saved(|saved| {
        let all = saved.unwrap_or_default().iter();
        all.map(|slot| slot.as_ref().map(|saved| saved.unpack(node, "a tensor")).transpose()).collect::<Result<_>>()
    })?;
    let call = GradientCall {
        op: node.op().clone(),
        attrs: node.attrs().iter().cloned().collect(),
        inputs: node.inputs.clone(),
        outputs: node.outputs.clone(),
        needs: node.edges.iter().map(Option::is_some).collect(),
        has_cotangent: cotangents.iter().map(Option::is_some).collect(),
        is_saved: saved.iter().map(Option::is_some).collect(),
    };
    let (name, needs) = (format!("{}.gradient", call.op.name), call.needs.clone());
    let body = Dynamic { run: Arc::new(move |given| call.run(&given.variadic(0))), is_interpreted: false };
    let args: Vec<Arg<'_>> = cotangents.iter().chain(&saved).flatten().map(Arg::Tensor).collect();
    let results = dispatch(&internal_op(name, body, Backward::Composite), &args, &[])?.into_vec();
    let mut results = results.into_iter();
    Ok(needs.into_iter().map(|is_needed| if is_needed { results.next() } else { None }).collect())
}

/// A recorded call without its tensors.
struct GradientCall {
    op: OpRef,
    attrs: SmallVec<[Attr; 2]>,
    inputs: SmallVec<[Option<Meta>; 2]>,
    outputs: SmallVec<[Meta; 1]>,
    /// The inputs that need a gradient.
    needs: Vec<bool>,
    has_cotangent: Vec<bool>,
    is_saved: Vec<bool>,
}

impl GradientCall {
    /// The gradients of the inputs that need one. `tensors` are the given cotangents, then the saved tensors.
    fn run(&self, tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
        let Backward::Formula(formula) = &self.op.backward else { return Ok(Vec::new()) };
        let mut tensors = tensors.iter().copied();
        let mut next = |is_given: &bool| if *is_given { tensors.next() } else { None };
        let cotangents: Vec<Option<Tensor>> = self.has_cotangent.iter().map(|given| next(given).cloned()).collect();
        let saved = self.is_saved.iter().map(|given| next(given).map(|t| Saved::input(t, None))).collect();
        let edges = self.needs.iter().map(|needed| needed.then(|| Edge::Leaf(Arc::default()))).collect();
        let (inputs, outputs) = (self.inputs.clone(), self.outputs.clone());
        let node = Arc::new(Node::new(self.op.clone(), &self.attrs, inputs, outputs, edges, None, saved));
        let mut gradients = written::gradients(formula, &BackwardCall::new(&node, &cotangents)?)?;
        gradients.resize(self.needs.len(), None);
        let needed = gradients.into_iter().zip(&self.needs).enumerate().filter(|(_, (_, needed))| **needed);
        let missing = |i: usize| no_gradient(&self.op, i);
        needed.map(|(i, (gradient, _))| gradient.ok_or_else(|| missing(i))).collect()
    }
}

/// The error of a gradient function that omits the gradient of an input.
#[cold]
pub(super) fn no_gradient(op: &OpRef, input: usize) -> Error {
    Error::runtime(format!(
        "op '{}': its backward returned no gradient for input '{}', which requires one; return zeros if the gradient is zero",
        op.name,
        op.parameter(input).name
    ))
}
