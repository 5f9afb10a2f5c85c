//! [`Traced`]: a recorded function: its graph, its gradient, and the conditions under which they are valid.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::argument::Argument;
use super::captured::Captured;
use super::gradient::{self, Gradient};
use super::ir::{Graph, Source, Value, ValueId};
use super::leaf::{Leaf, Leaves, Owner};
use super::record::Recording;
use super::recorder::Recorder;
use super::run::{Executable, Reads};
use super::{pass, verify};
use crate::autograd::is_grad_enabled;
use crate::error::{Error, Result};
use crate::op::{OpRef, registry};
use crate::tensor::{Device, Storage, Tensor};

/// A function of tensors, as a graph.
pub struct Traced {
    forward: Arc<Executable>,
    /// For each result, whether it lacks the history of its value, as after `detach()`.
    results: Vec<bool>,
    /// The gradient, and its op in histories.
    gradient: Option<(Gradient, OpRef)>,
    is_grad_enabled: bool,
    arguments: Vec<Argument>,
    captured: Vec<Captured>,
    /// The memory of these and of other tensors that the function may read. An argument may share it.
    memories: Vec<Weak<Storage>>,
    /// The leaves whose accumulated gradients the function reads or replaces.
    leaves: Leaves,
    /// Memory that the function created, and that is none of its results. If something still holds it, then the
    /// function has changed the state of an object, and must be recorded again with that state.
    strays: Mutex<Vec<Weak<Storage>>>,
    /// The registered ops that it calls, and the generation of the registry in which they were.
    ops: Vec<OpRef>,
    generation: AtomicU64,
    /// The graph after the recording and after each pass.
    stages: Vec<(String, String)>,
    numbers: usize,
}

impl Traced {
    /// Ends a recording. `args` are the arguments that the caller passed, `outputs` the results of the function,
    /// and `watched` tensors that the function may read otherwise. Also returns the results for the caller.
    ///
    /// # Errors
    /// If the function did something that a graph cannot repeat.
    pub fn new(
        recording: Recording,
        args: &[Tensor],
        outputs: &[Tensor],
        watched: &[Tensor],
    ) -> Result<(Traced, Vec<Tensor>)> {
        recording.with(|r| r.failure.take()).map_or(Ok(()), Err)?;
        let ids = outputs.iter().map(|t| recording.with(|r| r.operand(t))).collect::<Result<Vec<ValueId>>>()?;
        let lacks =
            |(id, t): (&ValueId, &Tensor)| !t.requires_grad() && recording.with(|r| r.held[id.at()].requires_grad());
        let detached: Vec<bool> = ids.iter().zip(outputs).map(lacks).collect();
        let mut ends = Vec::new();
        let metas = recording.with(|r| r.gradients.clone());
        for (meta, before) in &metas {
            let now = meta.grad();
            if now.as_ref().is_some_and(Tensor::requires_grad) {
                return Err(Error::runtime(
                    "a gradient that the function stores has a history, as by backward(create_graph=True), which its graph cannot \
                     repeat; use mt.grad",
                ));
            }
            let is_same = match (before, &now) {
                (Some(before), Some(now)) => before.is(now),
                (before, now) => before.is_none() && now.is_none(),
            };
            let value = now.map(|t| recording.with(|r| r.operand(&t))).transpose()?;
            ends.push((!is_same).then_some(value));
        }
        recording.with(|r| r.expect_unrecorded_changes())?;
        let calls = recording.with(|r| r.graph.calls.len());
        // The gradient may read any value that is left.
        recording.with(Recorder::keep_values);
        let differentiated = gradient::record(&recording, args.len(), &ids, outputs);
        let (generation, recorder) = (registry::generation(), recording.end());
        let mut forward = Graph { outputs: ids.clone(), ..recorder.graph.clone() };
        let rest = forward.calls.split_off(calls);
        let mut leaves = Vec::new();
        for ((meta, before), end) in metas.into_iter().zip(&ends) {
            let replaced = end.map(|value| {
                value.map(|id| {
                    forward.outputs.push(id);
                    forward.outputs.len() - 1
                })
            });
            let is_it = |t: &Tensor| t.grad_meta().is_some_and(|other| Arc::ptr_eq(other, &meta));
            let owner = match args.iter().position(is_it) {
                Some(at) => Owner::Argument(at),
                None if recorder.inputs().any(is_it) => {
                    return Err(Error::runtime(
                        "backward() in the function reaches an argument that has a history, which is not part of its graph; return the \
                         result, and call backward() outside of the function",
                    ));
                }
                None => Owner::Other(meta.clone()),
            };
            if let Owner::Argument(at) = owner {
                let of_it = |v: &&mut Value| matches!(&v.source, Source::Gradient(other) if Arc::ptr_eq(other, &meta));
                forward.values.iter_mut().filter(of_it).for_each(|v| v.source = Source::GradientOf(at));
            }
            leaves.push((Leaf { owner, hooks: meta.hook_numbers(), had_gradient: before.is_some(), replaced }, before));
        }
        let captured: Vec<Captured> = recorder.captured().map(Captured::new).collect();
        let others = watched.iter().map(|t| Arc::downgrade(t.storage()));
        let memories: Vec<Weak<Storage>> = captured.iter().map(Captured::memory).chain(others).collect();
        let first_saved = forward.outputs.len();
        let gradient = differentiated.map(|found| Gradient::new(found, &recorder, rest, &mut forward));
        let mut stages = vec![("recorded".to_owned(), forward.clone().compact().to_string())];
        verify(&forward)?;
        let again = recorder.again(&forward, &forward.outputs[first_saved..]);
        let mut kept: Vec<Tensor> = forward.outputs.iter().map(|id| recorder.held[id.at()].clone()).collect();
        let strays = strays(&recorder, &kept);
        let sources: Vec<Source> = ids.iter().map(|id| recorder.graph.value(*id).source.clone()).collect();
        if gradient.is_none() {
            forward = forward.without_histories();
        }
        let forward = pass::apply(forward.compact(), |name, graph| stages.push((name.to_owned(), graph.to_string())))?;
        let leaves = Leaves::new(leaves, &forward, args, &memories[..captured.len()]);
        let forward = Arc::new(Executable::new(forward));
        let gradient = gradient.map(|gradient| {
            let op = gradient.op(&forward, args.len());
            (gradient, op)
        });
        let traced = Traced {
            forward,
            results: detached,
            gradient,
            is_grad_enabled: is_grad_enabled(),
            arguments: Argument::all(args, &memories),
            captured,
            memories,
            leaves,
            strays: Mutex::new(strays),
            stages,
            ops: recorder.ops.into_values().filter(registry::has).collect(),
            generation: AtomicU64::new(generation),
            numbers: recorder.numbers,
        };
        let captured = traced.captured().ok_or_else(stale)?;
        let mut results: Vec<Tensor> = Vec::new();
        for (source, t) in sources.iter().zip(outputs) {
            results.push(match source {
                Source::Input(at) if traced.results[results.len()] => args[*at].detach(),
                Source::Input(at) => args[*at].clone(),
                Source::Computed if t.requires_grad() => t.detach(),
                _ => t.clone(),
            });
        }
        let reads = Reads { args, captured: &captured, numbers: &[] };
        if let Some(again) = again {
            let mut computed = Executable::new(again).run(reads, false)?.into_iter();
            kept[first_saved..]
                .iter_mut()
                .filter(|t| t.device() == Device::Meta)
                .for_each(|t| *t = computed.next().expect("one result for each"));
        }
        traced.attach(reads, &mut results, &kept[first_saved..])?;
        Ok((traced, results))
    }

    /// Whether the graph is valid for these arguments now.
    pub fn matches(&self, args: &[Tensor]) -> bool {
        self.is_grad_enabled == is_grad_enabled()
            && args.len() == self.arguments.len()
            && self.arguments.iter().enumerate().all(|(i, a)| a.is_like(args, i, &self.memories))
            && self.leaves.are_as_before(args)
    }

    /// Whether something that the graph refers to has been replaced, so that it must be recorded again.
    pub fn is_stale(&self) -> bool {
        let strays = std::mem::take(&mut *self.strays.lock().unwrap_or_else(PoisonError::into_inner));
        self.captured.iter().any(|c| c.get().is_none())
            || strays.iter().any(|memory| memory.strong_count() > 0)
            || !self.has_its_ops()
    }

    /// Whether all ops are still registered.
    fn has_its_ops(&self) -> bool {
        let now = registry::generation();
        if self.generation.load(Ordering::Acquire) == now {
            return true;
        }
        let has_all = self.ops.iter().all(registry::has);
        if has_all {
            self.generation.store(now, Ordering::Release);
        }
        has_all
    }

    fn captured(&self) -> Option<Vec<Tensor>> {
        self.captured.iter().map(Captured::get).collect()
    }

    /// The number of numbers that each run sets.
    pub fn numbers(&self) -> usize {
        self.numbers
    }

    /// Runs the graph. The arguments match.
    ///
    /// # Errors
    /// The error of a call; that the graph is stale.
    pub fn run(&self, args: &[Tensor], numbers: &[f64]) -> Result<Vec<Tensor>> {
        let captured = self.captured().ok_or_else(stale)?;
        let reads = Reads { args, captured: &captured, numbers };
        let mut outputs = self.forward.run_with(reads, &self.leaves)?;
        self.leaves.store_all(args, &outputs);
        let first_saved = outputs.len() - self.gradient.as_ref().map_or(0, |(gradient, _)| gradient.saved());
        let saved = outputs.split_off(first_saved);
        outputs.truncate(self.results.len());
        for (t, _) in outputs.iter_mut().zip(&self.results).filter(|(_, is_detached)| **is_detached) {
            *t = t.detach();
        }
        self.attach(reads, &mut outputs, &saved)?;
        Ok(outputs)
    }

    /// Gives the results their history.
    fn attach(&self, reads: Reads<'_>, results: &mut [Tensor], saved: &[Tensor]) -> Result<()> {
        match &self.gradient {
            Some((gradient, op)) => gradient.attach(op, reads, results, saved),
            None => Ok(()),
        }
    }

    /// The size of all tensors of a run together, in bytes.
    pub fn bytes(&self) -> usize {
        self.forward.bytes()
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.forward.graph()
    }

    /// The graph of the gradient, or the reason why there is none. `None` if no gradient is required.
    pub fn gradient(&self) -> Option<Result<&Graph, &Error>> {
        self.gradient.as_ref().map(|(gradient, _)| gradient.graph())
    }

    /// The text of the graph after the recording, and after each pass that changed it.
    pub fn stages(&self) -> &[(String, String)] {
        &self.stages
    }

    /// Whether an argument or a captured tensor requires a gradient.
    pub fn requires_grad(&self) -> bool {
        self.arguments.iter().any(Argument::requires_grad) || self.captured.iter().any(Captured::requires_grad)
    }
}

#[cold]
fn stale() -> Error {
    Error::runtime("a tensor that the graph refers to no longer exists; call the function again")
}

/// The memory that was created by the recorded calls, except that of results.
fn strays(recorder: &Recorder, results: &[Tensor]) -> Vec<Weak<Storage>> {
    let is_created = |source: &Source| matches!(source, Source::Computed | Source::Constant(_));
    let of_results: HashSet<_> = results.iter().map(|t| Arc::as_ptr(t.storage())).collect();
    let values = recorder
        .graph
        .values
        .iter()
        .zip(&recorder.held)
        .filter(|(value, t)| is_created(&value.source) && !of_results.contains(&Arc::as_ptr(t.storage())));
    values.filter(|(_, t)| recorder.is_new(t)).map(|(_, t)| Arc::downgrade(t.storage())).collect()
}
