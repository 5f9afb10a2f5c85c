//! The backward pass. It visits nodes from the youngest to the oldest, so all cotangents of a node are complete when it runs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use super::backward_call::{BackwardCall, fit, released};
use super::meta::GradMeta;
use super::mode::{GradMode, is_grad_enabled};
use super::node::{Edge, Meta, Node, Place, place};
use super::reach::{dependent, edges};
use super::{as_op, linear, written};
use crate::dtype::DType;
use crate::error::{Error, Result, counted};
use crate::graph::is_recording;
use crate::op::by_name::names;
use crate::op::{Backward, Role, gradient};
use crate::precision::Wide;
use crate::tensor::Tensor;

/// The options of a backward pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Keep the graph for another pass.
    pub retain_graph: bool,
    /// Record the pass itself, for gradients of gradients. This also keeps the graph.
    pub create_graph: bool,
}

/// Accumulates the gradients of `outputs` in the leaves from which they were computed. The cotangent of an output of one
/// element may be omitted; it is then 1.
pub fn backward(outputs: &[Tensor], cotangents: &[Option<Tensor>], options: Options) -> Result<()> {
    Pass::new(options, None).run(outputs, cotangents).map(|_| ())
}

/// The gradients of `outputs` with respect to `inputs`; `None` if an input does not contribute. Leaves do not accumulate them. The pass
/// computes no others.
pub fn grad(
    outputs: &[Tensor],
    inputs: &[Tensor],
    cotangents: &[Option<Tensor>],
    options: Options,
) -> Result<Vec<Option<Tensor>>> {
    let mut targets = Vec::new();
    for (i, t) in inputs.iter().enumerate() {
        targets.push(t.edge()?.ok_or_else(|| {
            Error::runtime(format!("grad: inputs[{i}] does not require a gradient; create it with requires_grad=True"))
        })?);
    }
    let visited = Some(dependent(0, &edges(outputs)?, &targets));
    Pass { visited, ..Pass::new(options, Some(&targets)) }.run(outputs, cotangents)
}

/// The gradients of a part of a computation that begins at `inputs`, before the hooks of the inputs.
pub(crate) fn grad_of_part(
    outputs: &[Tensor],
    inputs: &[Tensor],
    cotangents: &[Option<Tensor>],
    create_graph: bool,
) -> Result<Vec<Option<Tensor>>> {
    let options = Options { retain_graph: true, create_graph };
    let targets = edges(inputs)?;
    Pass { is_part: true, ..Pass::new(options, Some(&targets)) }.run(outputs, cotangents)
}

/// The gradients of a computation that was recorded since a sequence number, with respect to leaves. What does not depend on the leaves
/// is constant: the pass does not visit it.
pub(super) fn grad_since(
    sequence: u64,
    outputs: &[Tensor],
    leaves: &[Tensor],
    cotangents: &[Option<Tensor>],
    create_graph: bool,
) -> Result<Vec<Option<Tensor>>> {
    let targets = edges(leaves)?;
    let visited = Some(dependent(sequence, &edges(outputs)?, &targets));
    let options = Options { retain_graph: false, create_graph };
    Pass { visited, ..Pass::new(options, Some(&targets)) }.run(outputs, cotangents)
}

type Cotangents = SmallVec<[Option<Tensor>; 1]>;

struct Pass {
    options: Options,
    /// For each place whose gradient is a result, the positions of the results.
    targets: Option<HashMap<Place, SmallVec<[usize; 1]>>>,
    /// Whether the hooks of targets belong to another pass.
    is_part: bool,
    /// The only nodes whose gradients are computed, by sequence number. What else is no target is constant then.
    visited: Option<HashSet<u64>>,
    found: Vec<Option<Tensor>>,
    /// The nodes still to visit and the sums of their cotangents, by sequence number.
    waiting: BTreeMap<u64, (Arc<Node>, Cotangents)>,
    /// The gradients of leaves, with the dtypes of the leaves. They are stored at the end of the pass: a pass that fails does
    /// not change the gradients of leaves.
    leaves: Vec<(Arc<GradMeta>, Tensor, DType)>,
    leaf_slots: BTreeMap<*const GradMeta, usize>,
}

impl Pass {
    /// The caller keeps the targets alive.
    fn new(options: Options, targets: Option<&[Edge]>) -> Pass {
        let places = |targets: &[Edge]| {
            let mut places: HashMap<Place, SmallVec<[usize; 1]>> = HashMap::new();
            targets.iter().enumerate().for_each(|(at, target)| places.entry(target.place()).or_default().push(at));
            places
        };
        Pass {
            options,
            found: vec![None; targets.map_or(0, <[Edge]>::len)],
            targets: targets.map(places),
            is_part: false,
            visited: None,
            waiting: BTreeMap::new(),
            leaves: Vec::new(),
            leaf_slots: BTreeMap::new(),
        }
    }

    fn run(mut self, outputs: &[Tensor], cotangents: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        if !cotangents.is_empty() && cotangents.len() != outputs.len() {
            return Err(Error::value(format!(
                "grad: expected one cotangent for each of {}, got {}",
                counted(outputs.len(), "output"),
                cotangents.len()
            )));
        }
        let _mode = GradMode::new(self.options.create_graph);
        for (i, output) in outputs.iter().enumerate() {
            let edge = output.edge()?.ok_or_else(|| {
                Error::runtime(
                    "backward() needs a tensor that requires a gradient, but this tensor has no history; create an \
                     input with requires_grad=True and compute outside no_grad()",
                )
            })?;
            let start = first_cotangent(output, cotangents.get(i).and_then(Option::as_ref))?;
            self.arrive(&edge, start, output.dtype())?;
        }
        while let Some((_, (node, mut cotangents))) = self.waiting.pop_last() {
            crate::interrupt::check()?;
            for (k, slot) in cotangents.iter_mut().enumerate() {
                if let Some(g) = slot.take() {
                    let here = place(&node, k);
                    let hooks = if self.runs_hooks(here) { node.hooks(k) } else { Vec::new() };
                    // Within the body of an op, only views of half floats are half floats. They are no results of the pass.
                    let is_inside = node.is_wide && hooks.is_empty() && !self.is_target(here);
                    let g = if is_inside { g } else { rounded(g, node.outputs[k].dtype)? };
                    let g = run_hooks(hooks, g)?;
                    self.capture(here, &g);
                    *slot = Some(g);
                }
            }
            // What lies behind the inputs of a part belongs to another pass.
            let is_other = |k: usize| self.is_part && self.is_target(place(&node, k));
            (0..cotangents.len()).filter(|k| is_other(*k)).for_each(|k| cotangents[k] = None);
            let is_end = self.visited.as_ref().is_some_and(|visited| !visited.contains(&node.sequence));
            if is_end || cotangents.iter().all(Option::is_none) {
                continue;
            }
            let is_needed = |edge: &Option<Edge>| edge.as_ref().is_some_and(|edge| !self.is_constant(edge));
            let needed =
                self.visited.as_ref().map(|_| node.edges.iter().map(is_needed).collect::<SmallVec<[bool; 4]>>());
            let grads = gradients(&node, &cotangents, needed.as_deref())?;
            if !self.options.retain_graph && !self.options.create_graph {
                // Released before the next node: its gradients can reuse the memory of the saved tensors.
                node.release();
            }
            drop(cotangents);
            for ((edge, input), grad) in node.edges.iter().zip(&node.inputs).zip(grads) {
                if let (Some(edge), Some(input), Some(grad)) = (edge, input, grad) {
                    self.arrive(edge, grad, input.dtype)?;
                }
            }
        }
        self.finish()
    }

    /// Adds the gradients of the leaves to their accumulated ones, and stores the sums once all of them are computed.
    fn finish(mut self) -> Result<Vec<Option<Tensor>>> {
        let mut ready = Vec::with_capacity(self.leaves.len());
        for (meta, grad, dtype) in std::mem::take(&mut self.leaves) {
            let here = place(&meta, 0);
            let hooks = if self.runs_hooks(here) { meta.hooks() } else { Vec::new() };
            let grad = run_hooks(hooks, rounded(grad, dtype)?)?;
            self.capture(here, &grad);
            if self.targets.is_none() {
                ready.push((meta.add(grad, self.options.create_graph)?, meta));
            }
        }
        for (sum, meta) in ready {
            meta.store(sum)?;
        }
        Ok(std::mem::take(&mut self.found))
    }

    fn is_constant(&self, edge: &Edge) -> bool {
        let Some(visited) = &self.visited else { return false };
        !matches!(edge, Edge::Node(node, _) if visited.contains(&node.sequence)) && !self.is_target(edge.place())
    }

    fn is_target(&self, place: Place) -> bool {
        self.targets.as_ref().is_some_and(|targets| targets.contains_key(&place))
    }

    /// Whether the hooks at an edge belong to this pass.
    fn runs_hooks(&self, place: Place) -> bool {
        !self.is_part || !self.is_target(place)
    }

    fn capture(&mut self, place: Place, grad: &Tensor) {
        for at in self.targets.iter().filter_map(|targets| targets.get(&place)).flatten() {
            self.found[*at] = Some(grad.clone());
        }
    }

    /// Adds a gradient to the sum at the end of an edge. `dtype` is that of the tensor that has this gradient.
    fn arrive(&mut self, edge: &Edge, grad: Tensor, dtype: DType) -> Result<()> {
        if self.is_constant(edge) {
            return Ok(());
        }
        let slot = match edge {
            Edge::Leaf(meta) => match self.leaf_slots.get(&Arc::as_ptr(meta)) {
                Some(at) => {
                    let slot = &mut self.leaves[*at].1;
                    *slot = add(slot, &grad)?;
                    return Ok(());
                }
                None => {
                    self.leaf_slots.insert(Arc::as_ptr(meta), self.leaves.len());
                    self.leaves.push((meta.clone(), grad, dtype));
                    return Ok(());
                }
            },
            Edge::Node(node, index) => {
                let empty = || (node.clone(), SmallVec::from_elem(None, node.outputs.len()));
                let (_, cotangents) = self.waiting.entry(node.sequence).or_insert_with(empty);
                &mut cotangents[*index]
            }
        };
        *slot = Some(match slot.take() {
            Some(before) => add(&before, &grad)?,
            None => grad,
        });
        Ok(())
    }
}

/// The sum of two terms of a gradient. Terms of half-float gradients are added in `float32`.
fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let _wide = Wide::new();
    names::ADD.call(&[a.into(), b.into()], &[])
}

/// Rounds a complete gradient to the dtype of its tensor.
fn rounded(grad: Tensor, dtype: DType) -> Result<Tensor> {
    if grad.dtype() == dtype || grad.dtype() != dtype.compute() {
        return Ok(grad);
    }
    names::ASTYPE.call(&[(&grad).into(), dtype.into()], &[])
}

fn run_hooks(hooks: Vec<super::Hook>, grad: Tensor) -> Result<Tensor> {
    hooks.iter().try_fold(grad, |grad, hook| {
        let replaced = hook(&grad)?;
        match replaced {
            Some(new) if new.shape() != grad.shape() || new.dtype() != grad.dtype() => Err(Error::value(format!(
                "a hook returned a gradient of shape {} and dtype {}, expected shape {} and dtype {}",
                new.shape(),
                new.dtype(),
                grad.shape(),
                grad.dtype()
            ))),
            Some(new) => Ok(new),
            None => Ok(grad),
        }
    })
}

fn first_cotangent(output: &Tensor, given: Option<&Tensor>) -> Result<Tensor> {
    match given {
        Some(g) if g.shape() != output.shape() => Err(Error::value(format!(
            "backward: the gradient has shape {}, but the tensor has shape {}; pass a gradient of the same shape",
            g.shape(),
            output.shape()
        ))),
        Some(g) => fit(g.clone(), &Meta::of(output), "backward"),
        None if output.numel() == 1 => Tensor::ones(output.shape().clone(), output.dtype(), output.device()),
        None => Err(Error::runtime(format!(
            "backward() without a gradient needs a tensor with one element, got shape {}; reduce it with sum() or \
             mean(), or pass gradient=",
            output.shape()
        ))),
    }
}

/// One gradient for each flat input of a node that needs one, with the shape and dtype of the input.
fn gradients(node: &Arc<Node>, cotangents: &[Option<Tensor>], needed: Option<&[bool]>) -> Result<Vec<Option<Tensor>>> {
    let op = node.op();
    if node.with_saved(|saved| saved.is_none()) {
        return Err(released(&op.name));
    }
    let saved = op.outputs.iter().zip(cotangents).find(|(o, c)| o.role == Role::Saved && c.is_some());
    if let Some((output, _)) = saved {
        return Err(Error::runtime(format!(
            "op '{}' has no second derivative: its gradient uses the saved output '{}', which has no gradient; \
             compute it from the inputs in the formula instead",
            op.name, output.name
        )));
    }
    let call = BackwardCall::new(node, cotangents)?.needing(needed);
    // Gradients of half floats are computed in float32 and rounded once. Python code uses the dtypes of its operands instead.
    let _wide = (!op.body.is_interpreted()).then(Wide::new);
    let grads = match &op.backward {
        Backward::Derived(_) | Backward::Program(_) => gradient::run(&call)?,
        // The function of a library may read elements.
        Backward::Formula(_) if is_recording() && op.is_of_library() => as_op::gradients(node, cotangents)?,
        Backward::Formula(formula) => written::gradients(formula, &call)?,
        Backward::None(why) => return Err(Error::runtime(format!("op '{}' has no gradient: {why}", op.name))),
        Backward::NotNeeded => Vec::new(),
        Backward::Composite => {
            return Err(Error::runtime(format!(
                "op '{}' has no gradient: its body computes the output outside of recorded ops; define a backward for \
                 the op, or declare that it has none",
                op.name
            )));
        }
    };
    if let Backward::Formula(formula) = &op.backward
        && let Some(i) = formula.without.iter().find(|i| call.needs(**i as usize))
    {
        return Err(Error::runtime(format!(
            "op '{}' has no gradient for its input '{}', as its definition declares; detach() the input if no \
             gradient is needed",
            op.name,
            op.parameter(*i as usize).name
        )));
    }
    if grads.len() != node.edges.len() && !grads.is_empty() {
        return Err(Error::runtime(format!(
            "op '{}': its backward returned {} for {}; correct the backward",
            op.name,
            counted(grads.len(), "gradient"),
            counted(node.edges.len(), "input")
        )));
    }
    let left = grads.into_iter().enumerate().map(|(i, g)| match g {
        Some(g) if call.needs(i) => call.leave(i, g).map(Some),
        None if call.needs(i) => Err(as_op::no_gradient(op, i)),
        _ => Ok(None),
    });
    let mut grads = left.collect::<Result<Vec<_>>>()?;
    if is_grad_enabled() {
        linear::record(node, cotangents, &mut grads)?;
    }
    Ok(grads)
}
