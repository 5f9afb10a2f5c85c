//! [`Gradient`]: the gradient of a recorded function. It is recorded with the function, as a graph of its own.

use std::sync::Arc;

use smallvec::SmallVec;

use super::ir::{Call, Graph, Source, Value, ValueId};
use super::record::Recording;
use super::recorder::Recorder;
use super::run::{Executable, Reads};
use super::{pass, recompute, verify};
use crate::autograd::{BackwardCall, Edge, EnableGrad, GradMeta, Meta, Node, Saved, grad_of_part, is_grad_enabled};
use crate::error::{Error, Result};
use crate::op::{OpRef, history_op};
use crate::tensor::Tensor;

/// A tensor whose gradient is computed.
#[derive(Clone, Copy)]
enum Target {
    Argument(usize),
    Captured(usize),
}

/// The result of [`record`].
pub(super) struct Found {
    /// The results that have a gradient.
    outputs: Vec<usize>,
    targets: Vec<Target>,
    /// The values of the cotangents, and those of the gradients.
    values: Result<(Vec<ValueId>, Vec<ValueId>)>,
}

/// Records the gradient of the results. `None` if nothing requires one.
pub(super) fn record(recording: &Recording, args: usize, ids: &[ValueId], outputs: &[Tensor]) -> Option<Found> {
    let is_computed = |k: &usize| recording.with(|r| matches!(r.graph.value(ids[*k]).source, Source::Computed));
    let differentiable: Vec<usize> =
        (0..outputs.len()).filter(|k| outputs[*k].requires_grad() && is_computed(k)).collect();
    if differentiable.is_empty() || !is_grad_enabled() {
        return None;
    }
    let all: Vec<(Target, Tensor)> = recording.with(|r| {
        let pairs = r.graph.values.iter().zip(&r.held).filter(|(_, t)| t.requires_grad());
        let target = |(value, t): (&super::Value, &Tensor)| match value.source {
            Source::Input(at) => Some((Target::Argument(at), t.clone())),
            Source::Captured(at) => Some((Target::Captured(at), t.clone())),
            _ => None,
        };
        let mut all: Vec<(Target, Tensor)> = Vec::new();
        for (target, t) in pairs.filter_map(target) {
            // A leaf that is passed twice has one gradient.
            if !all.iter().any(|(_, other)| other.has_edge_of(&t)) {
                all.push((target, t));
            }
        }
        all
    });
    let mut found = Found {
        outputs: differentiable,
        targets: all.iter().map(|(target, _)| *target).collect(),
        values: Ok(Default::default()),
    };
    let run = || {
        let results: Vec<Tensor> = found.outputs.iter().map(|k| outputs[*k].clone()).collect();
        let cotangent = |t: &Tensor| Tensor::ones(t.shape().clone(), t.dtype(), t.device());
        let cotangents: Vec<Tensor> = results.iter().map(cotangent).collect::<Result<_>>()?;
        let inputs = cotangents.iter().enumerate().map(|(j, t)| recording.with(|r| r.add_input(t, args + j))).collect();
        let cotangents: Vec<Option<Tensor>> = cotangents.into_iter().map(Some).collect();
        let tensors: Vec<Tensor> = all.iter().map(|(_, t)| t.clone()).collect();
        let gradients = grad_of_part(&results, &tensors, &cotangents, false)?;
        recording.with(|r| r.failure.take()).map_or(Ok(()), Err)?;
        let (mut targets, mut values) = (Vec::new(), Vec::new());
        for (gradient, target) in gradients.into_iter().zip(&found.targets) {
            if let Some(gradient) = gradient {
                targets.push(*target);
                values.push(recording.with(|r| r.operand(&gradient))?);
            }
        }
        Ok((targets, inputs, values))
    };
    match run() {
        Ok((targets, inputs, values)) => {
            found.targets = targets;
            found.values = Ok((inputs, values));
        }
        Err(error) => found.values = Err(error),
    }
    Some(found)
}

/// The gradient of a recorded function.
#[derive(Clone)]
pub(super) struct Gradient {
    outputs: Vec<usize>,
    targets: Vec<Target>,
    /// The number of tensors that a call saves for the graph.
    saved: usize,
    graph: Arc<Result<Executable>>,
}

impl Gradient {
    /// The gradient, from the calls that were recorded after those of the function. Adds the tensors that it reads to
    /// the outputs of the function.
    pub fn new(found: Found, recorder: &Recorder, calls: Vec<Call>, forward: &mut Graph) -> Gradient {
        let Found { outputs, targets, values } = found;
        let graph = values.and_then(|(cotangents, gradients)| {
            let graph = Graph { values: recorder.graph.values.clone(), calls, outputs: gradients };
            let (graph, saved) = with_inputs(graph, &cotangents, forward, recorder);
            verify(&graph)?;
            Ok((pass::apply(graph.without_histories().compact(), |_, _| {})?, saved))
        });
        let (graph, saved) = match graph {
            Ok((graph, saved)) => (Ok(Executable::new(graph)), saved),
            Err(error) => (Err(error), Vec::new()),
        };
        forward.outputs.extend(&saved);
        Gradient { outputs, targets, saved: saved.len(), graph: Arc::new(graph) }
    }

    /// The number of outputs that it adds to those of the function.
    pub fn saved(&self) -> usize {
        self.saved
    }

    pub fn graph(&self) -> Result<&Graph, &Error> {
        self.graph.as_ref().as_ref().map(Executable::graph)
    }

    /// The op in the histories of results: a function whose graph is `forward`, with so many arguments.
    pub fn op(&self, forward: &Arc<Executable>, args: usize) -> OpRef {
        let (gradient, forward) = (self.clone(), forward.clone());
        // The graph contains the conversions of half floats.
        history_op(
            "jit".into(),
            true,
            Arc::new(move |call| {
                // The graph is that of all results. A zero for one that is not used would turn infinity into NaN.
                let uses_all = (0..gradient.outputs.len()).all(|j| call.cotangent_if_any(j).is_some());
                match is_grad_enabled() || !uses_all && forward.graph().is_pure() {
                    true => gradient.again(call, &forward, args),
                    false => gradient.plain(call),
                }
            }),
        )
    }

    /// Gives the results a history: a node of the op.
    pub fn attach(&self, op: &OpRef, reads: Reads<'_>, results: &mut [Tensor], saved: &[Tensor]) -> Result<()> {
        let targets: Vec<&Tensor> = self.targets.iter().map(|target| target.of(reads)).collect();
        let edges = targets.iter().map(|t| t.edge()).collect::<Result<SmallVec<[Option<Edge>; 2]>>>()?;
        let none = std::iter::repeat_with(|| None).take(self.targets.len() + self.outputs.len());
        let mut kept: SmallVec<[Option<Saved>; 3]> = none.collect();
        kept.extend(saved.iter().map(|t| Some(Saved::input(t, None))));
        for t in reads.args.iter().chain(reads.captured) {
            kept.push(Some(Saved::input(t, t.edge()?.as_ref())));
        }
        let inputs = targets.iter().map(|t| Some(Meta::of(t))).collect();
        let outputs = self.outputs.iter().map(|k| Meta::of(&results[*k])).collect();
        let node = Arc::new(Node::new(op.clone(), &[], inputs, outputs, edges, None, kept));
        for (j, k) in self.outputs.iter().enumerate() {
            let version = results[*k].storage().version();
            results[*k] = results[*k].detach().with_grad_meta(GradMeta::computed_by(node.clone(), j, version));
        }
        Ok(())
    }

    fn cotangents(&self, call: &BackwardCall<'_>) -> Result<Vec<Tensor>> {
        (0..self.outputs.len()).map(|j| call.cotangent(j)).collect()
    }

    /// The gradients, by the graph.
    fn plain(&self, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
        let graph = self.graph.as_ref().as_ref().map_err(Clone::clone)?;
        let mut args = self.cotangents(call)?;
        for at in 0..self.saved {
            args.push(call.further(at)?);
        }
        let gradients = graph.run(Reads { args: &args, captured: &[], numbers: &[] }, false)?;
        Ok(gradients.into_iter().map(Some).collect())
    }

    /// The gradients of some results, or with a history. For that the function runs again, and is recorded call by call.
    fn again(&self, call: &BackwardCall<'_>, forward: &Executable, args: usize) -> Result<Vec<Option<Tensor>>> {
        if !forward.graph().is_pure() {
            return Err(Error::runtime(
                "the gradient of a gradient runs a function of mt.jit again, but the function changes a tensor in place, draws \
                 random numbers, or calls Python code, such as mt.cond; call it without mt.jit, or use mt.grad inside of it",
            ));
        }
        let further = (self.saved..call.num_further()).map(|at| call.further(at));
        let mut tensors = further.collect::<Result<Vec<Tensor>>>()?;
        let captured = tensors.split_off(args);
        let reads = Reads { args: &tensors, captured: &captured, numbers: &[] };
        let outputs = {
            let _on = EnableGrad::new();
            forward.run(reads, true)?
        };
        let targets: Vec<Tensor> = self.targets.iter().map(|target| target.of(reads).clone()).collect();
        let cotangents = (0..self.outputs.len()).map(|j| call.cotangent_if_any(j).cloned());
        let results = self.outputs.iter().map(|k| outputs[*k].clone()).zip(cotangents);
        let (results, cotangents): (Vec<_>, Vec<_>) = results.filter(|(t, c)| t.requires_grad() && c.is_some()).unzip();
        let gradients = grad_of_part(&results, &targets, &cotangents, is_grad_enabled())?;
        let zero = |t: &Tensor| Tensor::zeros(t.shape().clone(), t.dtype(), t.device());
        gradients.into_iter().zip(&targets).map(|(g, t)| g.map_or_else(|| zero(t), Ok).map(Some)).collect()
    }
}

impl Target {
    fn of<'a>(&self, reads: Reads<'a>) -> &'a Tensor {
        match *self {
            Target::Argument(at) => &reads.args[at],
            Target::Captured(at) => &reads.captured[at],
        }
    }
}

/// Makes the inputs of the graph of a gradient: the cotangents, then values of the function, which are also returned.
/// The graph computes others of these again.
fn with_inputs(
    mut graph: Graph,
    cotangents: &[ValueId],
    function: &Graph,
    recorder: &Recorder,
) -> (Graph, Vec<ValueId>) {
    let written = function.written();
    let is_constant = |v: &Value| {
        matches!(v.source, Source::Constant(_)) && !written.get(v.memory as usize).copied().unwrap_or_default()
    };
    let mut is_known: Vec<bool> = graph.values.iter().map(is_constant).collect();
    for (j, id) in cotangents.iter().enumerate() {
        is_known[id.at()] = true;
        graph.values[id.at()].source = Source::Input(j);
    }
    graph.calls.iter().flat_map(Call::computes).for_each(|id| is_known[id.at()] = true);
    let used = graph.calls.iter().flat_map(Call::reads).chain(graph.outputs.iter().copied());
    let needed = used.filter(|id| !std::mem::replace(&mut is_known[id.at()], true)).collect();
    let (saved, mut again) = recompute::choose(function, needed, &recorder.lost(function));
    for (at, id) in saved.iter().enumerate() {
        graph.values[id.at()].source = Source::Input(cotangents.len() + at);
    }
    // The function takes the keys.
    for value in graph.values.iter_mut().filter(|v| matches!(v.source, Source::Key(..))) {
        value.source = Source::Computed;
    }
    again.append(&mut graph.calls);
    (Graph { calls: again, ..graph }, saved)
}
