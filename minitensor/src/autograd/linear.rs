//! The history of a gradient of an op that is linear in an input: its derivative is the op itself.
//!
//! The gradient of a result `A x` is `Aᵀ d` for the cotangent `d`. The gradient of this for a cotangent `t` is `A t`, a call of the op. If `A`
//! depends on other inputs `c`, their gradient is that of `dᵀ A(c) t`. So an op has derivatives of any order, and forward mode, even
//! if a function that is not recorded computes its gradient.

use std::sync::Arc;

use smallvec::SmallVec;

use super::backward_call::BackwardCall;
use super::engine::{Options, grad};
use super::meta::GradMeta;
use super::mode::{EnableGrad, is_grad_enabled};
use super::node::{Edge, Meta, Node};
use super::saved::Saved;
use crate::attr::Attr;
use crate::dispatch::dispatch;
use crate::error::Result;
use crate::op::{Arg, Backward, OpDef, OpRef, Property, history_op};
use crate::tensor::Tensor;

/// Gives the gradients of inputs in which the op is linear a history, if the gradient function has computed them without one.
pub(super) fn record(node: &Arc<Node>, cotangents: &[Option<Tensor>], grads: &mut [Option<Tensor>]) -> Result<()> {
    let op = node.op();
    // Other gradients consist of recorded ops.
    if !matches!(op.backward, Backward::Formula(_)) {
        return Ok(());
    }
    for property in op.properties.iter() {
        let Property::Linear(group) = property else { continue };
        let is_bare = |i: &usize| matches!(&grads[*i], Some(g) if contains(group, op, *i) && !g.requires_grad());
        let bare: Vec<usize> = (0..grads.len()).filter(is_bare).collect();
        if !bare.is_empty() {
            Transpose::new(node, group, bare).attach(node, cotangents, grads)?;
        }
    }
    Ok(())
}

/// Whether a flat input belongs to a parameter of a group.
fn contains(group: &[u8], op: &OpDef, flat: usize) -> bool {
    group.contains(&(op.parameter_at(flat) as u8))
}

/// The gradients of some inputs of a call, without their tensors.
struct Transpose {
    op: OpRef,
    attrs: SmallVec<[Attr; 2]>,
    inputs: SmallVec<[Option<Meta>; 2]>,
    /// Whether the op is linear in an input.
    is_linear: Vec<bool>,
    /// The inputs of which these are the gradients.
    wrt: Vec<usize>,
    /// The number of cotangents.
    cotangents: usize,
}

impl Transpose {
    fn new(node: &Arc<Node>, group: &[u8], wrt: Vec<usize>) -> Transpose {
        let op = node.op();
        Transpose {
            op: op.clone(),
            attrs: node.attrs().iter().cloned().collect(),
            inputs: node.inputs.clone(),
            is_linear: (0..node.inputs.len()).map(|i| contains(group, op, i)).collect(),
            wrt,
            cotangents: node.outputs.len(),
        }
    }

    /// Gives the gradients the history of a call that takes the cotangents and the inputs in which the op is not linear.
    fn attach(self, node: &Arc<Node>, cotangents: &[Option<Tensor>], grads: &mut [Option<Tensor>]) -> Result<()> {
        let mut args: Vec<Option<Tensor>> = cotangents.to_vec();
        for (i, is_linear) in self.is_linear.iter().enumerate() {
            let saved = node.with_saved(|saved| match saved.and_then(|saved| saved[i].as_ref()) {
                Some(saved) if !is_linear => saved.unpack(node, &self.op.parameter(i).name).map(Some),
                _ => Ok(None),
            });
            args.push(saved?);
        }
        let edge = |t: &Option<Tensor>| t.as_ref().map_or(Ok(None), Tensor::edge);
        let edges = args.iter().map(edge).collect::<Result<SmallVec<[Option<Edge>; 2]>>>()?;
        if edges.iter().all(Option::is_none) {
            return Ok(());
        }
        let outputs: SmallVec<[Meta; 1]> = self.wrt.iter().filter_map(|i| grads[*i].as_ref()).map(Meta::of).collect();
        let mut saved: SmallVec<[Option<Saved>; 3]> =
            args.iter().zip(&edges).map(|(t, edge)| t.as_ref().map(|t| Saved::input(t, edge.as_ref()))).collect();
        saved.extend(outputs.iter().map(|_| None));
        let (wrt, name) = (self.wrt.clone(), format!("{}.transpose", self.op.name));
        let op = history_op(name, false, Arc::new(move |call| self.gradient(call)));
        let metas = args.iter().map(|t| t.as_ref().map(Meta::of)).collect();
        let transposed = Arc::new(Node::new(op, &[], metas, outputs, edges, None, saved));
        for (j, i) in wrt.into_iter().enumerate() {
            grads[i] = grads[i].take().map(|g| {
                let version = g.storage().version();
                g.detach().with_grad_meta(GradMeta::computed_by(transposed.clone(), j, version))
            });
        }
        Ok(())
    }

    /// The gradient of the gradients: a call of the op.
    fn gradient(&self, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
        let is_recorded = is_grad_enabled();
        let mut args: Vec<Option<Tensor>> = Vec::new();
        let (mut wanted, mut places) = (Vec::new(), Vec::new());
        for (i, meta) in self.inputs.iter().enumerate() {
            args.push(match (meta, self.wrt.iter().position(|k| *k == i)) {
                (_, Some(j)) => Some(call.cotangent(j)?),
                (Some(meta), None) if self.is_linear[i] => {
                    Some(Tensor::zeros(meta.shape.clone(), meta.dtype, meta.device)?)
                }
                (_, None) => call.optional_input(self.cotangents + i)?,
            });
            if let Some(arg) = args[i].as_mut().filter(|_| call.needs(self.cotangents + i)) {
                if !is_recorded {
                    *arg = arg.detach();
                    arg.set_requires_grad(true)?;
                }
                wanted.push(arg.clone());
                places.push(self.cotangents + i);
            }
        }
        let args: Vec<Arg<'_>> = args.iter().map(|t| t.as_ref().map_or(Arg::None, Arg::Tensor)).collect();
        let outputs = {
            let _on = EnableGrad::new();
            dispatch(&self.op, &args, &self.attrs)?.into_vec()
        };
        let mut gradients: Vec<Option<Tensor>> = vec![None; call.num_inputs()];
        for (k, output) in outputs.iter().enumerate().filter(|(k, _)| call.needs(*k)) {
            gradients[k] = Some(if is_recorded { output.clone() } else { output.detach() });
        }
        if !wanted.is_empty() {
            let cotangents = (0..outputs.len()).map(|k| call.optional_input(k));
            let cotangents = cotangents.collect::<Result<Vec<_>>>()?;
            let pairs = outputs.into_iter().zip(cotangents).filter(|(y, d)| y.requires_grad() && d.is_some());
            let (outputs, cotangents): (Vec<_>, Vec<_>) = pairs.unzip();
            let found =
                grad(&outputs, &wanted, &cotangents, Options { retain_graph: false, create_graph: is_recorded })?;
            let zero = |t: &Tensor| Tensor::zeros(t.shape().clone(), t.dtype(), t.device());
            for ((place, found), t) in places.into_iter().zip(found).zip(&wanted) {
                gradients[place] = Some(found.map_or_else(|| zero(t), Ok)?);
            }
        }
        Ok(gradients)
    }
}
