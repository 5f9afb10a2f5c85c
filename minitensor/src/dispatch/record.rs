//! [`Recording`]: the node that a call adds to the graph.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::attr::Attr;
use crate::autograd::{Edge, GradMeta, Meta, Node, Saved, Whole};
use crate::error::{Error, Result};
use crate::graph::record as graph;
use crate::op::gradient::pullback::Pullback;
use crate::op::{Backward, OpDef, OpRef, Property, Role, gradient};
use crate::tensor::Tensor;

type Edges = SmallVec<[Option<Edge>; 2]>;

/// The state before a call that recording it afterwards requires.
pub struct Recording {
    edges: Edges,
    /// The derived gradient, if the op has one.
    pullback: Option<Arc<Pullback>>,
    /// Copies of inputs that the call overwrites and its gradient reads.
    before: SmallVec<[Option<Tensor>; 2]>,
    /// The bases of the views that the call changes.
    wholes: SmallVec<[Whole; 1]>,
}

/// Finds the edges of the inputs, if any of them requires a gradient. A call that changes a leaf in place is an error here,
/// before anything has changed.
pub fn prepare(op: &OpDef, inputs: &[Option<&Tensor>], attrs: &[Attr]) -> Result<Option<Recording>> {
    let mut edges = Edges::new();
    for t in inputs {
        edges.push(t.map(Tensor::edge).transpose().map_err(|e| e.context(format!("op '{}'", op.name)))?.flatten());
    }
    if edges.iter().all(Option::is_none) || matches!(op.backward, Backward::NotNeeded) {
        return Ok(None);
    }
    let dtypes = inputs.iter().map(|t| t.map(Tensor::dtype));
    let pullback = gradient::pullback(op, attrs, dtypes, |i| edges[i].is_some());
    let is_saved = |i: usize| saves_input(op, pullback.as_deref(), i);
    let (mut before, mut wholes) = (SmallVec::new(), SmallVec::new());
    for (i, t) in inputs.iter().enumerate() {
        let mutated = op.parameter(i).mutated;
        if mutated && let (Backward::None(why), Some(_)) = (&op.backward, &edges[i]) {
            return Err(Error::runtime(format!(
                "op '{}' cannot change '{}' in place, because it requires a gradient and {why}; call the op under \
                 no_grad()",
                op.name,
                op.parameter(i).name
            )));
        }
        if mutated && edges[i].is_some() && t.is_some_and(Tensor::is_of_leaf) {
            return Err(Error::runtime(format!(
                "op '{}' cannot change '{}' in place, because it is a leaf that requires a gradient, or a view of \
                 one; call the op under no_grad(), or use the op that returns a new tensor",
                op.name,
                op.parameter(i).name
            )));
        }
        if let (true, Some(view)) = (mutated, t.filter(|t| t.dtype().is_differentiable())) {
            wholes.extend(Whole::of(op, i, view)?);
        }
        // The changed input, and other inputs that are the same tensor.
        let is_changed = |t: &&Tensor| {
            let mut all = inputs.iter().enumerate();
            mutated || all.any(|(k, other)| op.parameter(k).mutated && other.is_some_and(|o| o.is_same_window(t)))
        };
        let copy = t.filter(|t| is_saved(i) && is_changed(t)).map(|t| graph::outside(|| t.copied())).transpose()?;
        before.push(copy.map(|c| match &edges[i] {
            Some(Edge::Node(node, index)) => c.with_grad_meta(GradMeta::computed_by(node.clone(), *index, 0)),
            _ => c,
        }));
    }
    Ok(Some(Recording { edges, pullback, before, wholes }))
}

impl Recording {
    /// The outputs that the gradient reads.
    pub fn outputs_read(&self, op: &OpDef) -> impl Iterator<Item = usize> {
        (0..op.outputs.len()).filter(|k| gradient::saves_output(op, self.pullback.as_deref(), *k))
    }

    /// Attaches the history to the outputs: all of them, also those that only the gradient reads.
    pub fn record(mut self, op: &OpRef, inputs: &[Option<&Tensor>], attrs: &[Attr], outputs: &mut [Option<Tensor>]) {
        let metas = inputs.iter().map(|t| t.map(Meta::of)).collect();
        let returned = outputs.iter().map(|t| t.as_ref().map_or_else(Meta::nothing, Meta::of)).collect();
        let pullback = self.pullback.as_deref();
        let mut saved = SmallVec::new();
        for (i, t) in inputs.iter().enumerate() {
            let kept = t.filter(|_| saves_input(op, pullback, i));
            saved.push(kept.map(|t| Saved::input(self.before[i].as_ref().unwrap_or(t), self.edges[i].as_ref())));
        }
        for (k, t) in outputs.iter().enumerate() {
            saved.push(t.as_ref().filter(|_| gradient::saves_output(op, pullback, k)).map(|t| Saved::output(t, k)));
        }
        let node = Arc::new(Node::new(op.clone(), attrs, metas, returned, self.edges, self.pullback, saved));
        for (k, slot) in outputs.iter_mut().enumerate() {
            let Some(t) = slot.take_if(|t| t.dtype().is_differentiable()) else { continue };
            let version = t.storage().version();
            *slot = Some(match op.outputs.get(k).map(|o| o.role) {
                Some(Role::Mutates(i)) => {
                    if let Some(original) = inputs[i as usize] {
                        original.grad_meta_or_init().rebase(node.clone(), k, version);
                        original.storage().set_recorded();
                        if let Some(at) = self.wholes.iter().position(|whole| whole.input == i as usize) {
                            self.wholes.swap_remove(at).was_changed(original, &node, k);
                        }
                    }
                    t
                }
                _ => t.with_grad_meta(GradMeta::computed_by(node.clone(), k, version)),
            });
        }
    }
}

/// Whether the gradient reads an input.
fn saves_input(op: &OpDef, pullback: Option<&Pullback>, input: usize) -> bool {
    match (&op.backward, pullback) {
        (_, Some(pullback)) => pullback.saves_input(input),
        (Backward::Derived(_) | Backward::Program(_), None) => true,
        (Backward::Formula(f), _) => {
            let input = op.parameter_at(input) as u8;
            // The derivative of the gradient calls the op again, in the direction of the others.
            let is_fixed = |property: &Property| matches!(property, Property::Linear(group) if !group.contains(&input));
            f.saved_inputs.contains(&input) || op.properties.iter().any(is_fixed)
        }
        _ => false,
    }
}
