//! [`Recorder`]: what has been recorded of a function.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::batch::{Histories, History};
use super::ir::{Call, Cut, Graph, Operand, Source, Value, ValueId};
use super::record::{births, locate};
use super::release::Release;
use super::window::Window;
use crate::attr::Attr;
use crate::autograd::{GradMeta, is_grad_enabled, next_sequence};
use crate::dispatch::Produced;
use crate::error::{Error, Result};
use crate::op::by_name::names;
use crate::op::{Arg, OpDef, OpRef, Role};
use crate::precision::is_wide;
use crate::tensor::{Device, Region, Storage, Tensor};

/// A running body.
pub(super) struct Frame {
    /// The number of calls and births before it.
    pub calls: usize,
    pub birth: u64,
    /// The number of values before it.
    pub values: usize,
    /// Whether it is the body of an op that copies.
    pub copies: bool,
    /// Whether it reads elements.
    pub reads: bool,
    /// Whether the body of a call that is recorded as a whole takes random numbers.
    pub draws: bool,
    /// Whether the call of the function that led to it does not record gradients.
    pub is_quiet: bool,
}

/// What has been recorded.
#[derive(Default)]
pub(super) struct Recorder {
    pub graph: Graph,
    /// The tensor of each value. They keep the addresses of their memory from being used again.
    pub held: Vec<Tensor>,
    /// For each value, the version of the last recorded change when it was added.
    recorded: Vec<u64>,
    /// The gradients of leaves that were read or replaced, with their tensors before that.
    pub gradients: Vec<(Arc<GradMeta>, Option<Tensor>)>,
    /// The leaves that the function made.
    pub leaves: Vec<Arc<GradMeta>>,
    /// The number of numbers that each run sets.
    pub numbers: usize,
    pub failure: Option<Error>,
    /// The ops that were called, also by bodies.
    pub ops: HashMap<*const OpDef, OpRef>,
    windows: HashMap<Window, ValueId>,
    /// The values of each memory, and its number.
    pub(super) memories: HashMap<*const Storage, (u32, Vec<ValueId>)>,
    /// The number of the next memory.
    next_memory: u32,
    pub(super) frames: Vec<Frame>,
    first_birth: u64,
    /// The number of the first node of a history in the recording.
    pub first_node: u64,
    /// Births in bodies that are recorded as one call. Unless they are results, a graph cannot have their tensors.
    hidden: Vec<Range<u64>>,
    /// The histories of values, for a run with a batch.
    pub histories: Option<Histories>,
    /// Whether the graph is for another process.
    pub(super) is_portable: bool,
    pub(super) release: Release,
}

/// What to do instead of reading elements.
const CHOICE: &str =
    "choose with mt.where or mt.cond, loop with mt.while_loop or mt.scan, or do this outside of the function";

impl Recorder {
    /// Records from now on.
    pub fn new(inputs: &[Tensor], histories: Option<Histories>) -> Recorder {
        let first_birth = births();
        let mut recorder = Recorder { first_birth, first_node: next_sequence(), histories, ..Recorder::default() };
        inputs.iter().for_each(|t| recorder.input(t));
        recorder
    }

    fn input(&mut self, t: &Tensor) {
        let at = self.graph.values.iter().filter(|v| matches!(v.source, Source::Input(_))).count();
        self.insert(t, Source::Input(at));
    }

    /// Adds an argument of the graph, and returns its value.
    pub fn add_input(&mut self, t: &Tensor, at: usize) -> ValueId {
        self.insert(t, Source::Input(at))
    }

    /// Adds a value. A tensor with the same window as an earlier one is that value.
    pub fn insert(&mut self, t: &Tensor, source: Source) -> ValueId {
        let id = ValueId(self.graph.values.len() as u32);
        let next = self.next_memory;
        let (memory, values) = self.memories.entry(Arc::as_ptr(t.storage())).or_insert_with(|| (next, Vec::new()));
        let (memory, is_new) = (*memory, values.is_empty());
        values.push(id);
        if is_new {
            self.next_memory += 1;
            self.note_memory(t.storage().bytes());
        }
        if let (Some(histories), Source::Input(_) | Source::Key(..)) = (&mut self.histories, &source) {
            histories.note_difference(t);
        }
        let (shape, dtype, device) = (t.shape().clone(), t.dtype(), t.device());
        self.graph.values.push(Value { shape, dtype, device, memory, source });
        self.held.push(t.clone());
        self.recorded.push(t.storage().recorded());
        self.windows.entry(Window::of(t)).or_insert(id);
        id
    }

    /// Forgets the value with the window of a tensor.
    pub(super) fn forget_window(&mut self, t: &Tensor) {
        self.windows.remove(&Window::of(t));
    }

    /// The values with the window of a tensor.
    pub fn with_window(&self, t: &Tensor) -> impl Iterator<Item = ValueId> + '_ {
        let window = Window::of(t);
        let values = self.memories.get(&Arc::as_ptr(t.storage())).map_or(&[][..], |(_, values)| values);
        values.iter().copied().filter(move |id| Window::of(&self.held[id.at()]) == window)
    }

    /// Whether the tensor is an argument, or a part of one.
    pub fn is_of_argument(&self, t: &Tensor) -> bool {
        let values = self.memories.get(&Arc::as_ptr(t.storage())).map_or(&[][..], |(_, values)| values);
        values.iter().any(|id| matches!(self.graph.value(*id).source, Source::Input(_)))
    }

    /// The captured tensors, in the order of their numbers.
    pub fn captured(&self) -> impl Iterator<Item = &Tensor> {
        let pairs = self.graph.values.iter().zip(&self.held);
        pairs.filter(|(value, _)| matches!(value.source, Source::Captured(_))).map(|(_, t)| t)
    }

    /// The tensors that the function got as arguments.
    pub fn inputs(&self) -> impl Iterator<Item = &Tensor> {
        let pairs = self.graph.values.iter().zip(&self.held);
        pairs.filter(|(value, _)| matches!(value.source, Source::Input(_))).map(|(_, t)| t)
    }

    /// Whether the memory of a tensor was created during the recording.
    pub fn is_new(&self, t: &Tensor) -> bool {
        t.storage().birth() >= self.first_birth
    }

    /// An error if a recorded call has changed an argument or a captured tensor in place: its history would have to
    /// change in each run.
    pub fn expect_unrecorded_changes(&self) -> Result<()> {
        for ((value, t), before) in self.graph.values.iter().zip(&self.held).zip(&self.recorded) {
            let is_given = matches!(value.source, Source::Input(_) | Source::Captured(_));
            if is_given && t.storage().recorded() != *before {
                return Err(Error::runtime(format!(
                    "the function changes a tensor of shape {} in place while gradients are recorded, and the tensor \
                     is not its own; change it under no_grad(), or return a new tensor",
                    value.shape
                )));
            }
        }
        Ok(())
    }

    /// Whether the elements of a tensor may differ in the next run.
    pub(super) fn is_traced(&self, t: &Tensor) -> bool {
        let values = self.memories.get(&Arc::as_ptr(t.storage())).map(|(_, values)| values);
        match values {
            Some(values) => !values.iter().all(|id| matches!(self.graph.value(*id).source, Source::Constant(_))),
            None => t.storage().birth() < self.first_birth,
        }
    }

    pub(super) fn note_access(&mut self, t: &Tensor) {
        if t.device() == Device::Meta || !self.is_traced(t) || self.histories.as_ref().is_some_and(|h| !h.differ(t)) {
            return;
        }
        match self.frames.last_mut() {
            Some(frame) => frame.reads = true,
            None => self.fail("reads the elements of a tensor", CHOICE),
        }
    }

    /// Ends the recording: the function does this, which a graph cannot do. `advice` says what to do instead.
    pub(super) fn fail(&mut self, what: &str, advice: &str) {
        if self.failure.is_some() {
            return;
        }
        let place = locate().map_or(String::new(), |place| format!(" ({place})"));
        let why = match self.histories {
            Some(_) => "which differ for each example of mt.vmap",
            None => "which its graph cannot repeat",
        };
        self.failure = Some(Error::runtime(format!("the function {what}{place}, {why}; {advice}")));
    }

    /// The value of a tensor.
    pub fn operand(&mut self, t: &Tensor) -> Result<ValueId> {
        if let Some(id) = self.windows.get(&Window::of(t)).copied() {
            let held = &mut self.held[id.at()];
            // Not a view with a history of its own.
            if self.histories.is_none()
                && t.requires_grad()
                && !held.requires_grad()
                && !t.is_computed_since(self.first_node)
            {
                *held = t.clone();
            }
            return Ok(id);
        }
        if let Some((_, values)) = self.memories.get(&Arc::as_ptr(t.storage())) {
            let whole = values.iter().copied().find(|id| t.lies_within(&self.held[id.at()]));
            if let Some(whole) = whole {
                return self.view(whole, t);
            }
        }
        let birth = t.storage().birth();
        if birth < self.first_birth {
            let window = Window::of(t);
            let is_it = |(_, before): &&(Arc<GradMeta>, Option<Tensor>)| {
                before.as_ref().is_some_and(|gradient| Window::of(gradient) == window)
            };
            let gradient = self.gradients.iter().find(is_it).map(|(meta, _)| meta.clone());
            let source = gradient.map_or_else(|| Source::Captured(self.captured().count()), Source::Gradient);
            return Ok(self.insert(t, source));
        }
        if birth % 2 == 1 || self.hidden.iter().any(|range| range.contains(&birth)) {
            return Err(Error::runtime(
                "a call uses a tensor that was created inside of another call, such as a branch of mt.cond or an op that \
                 reads elements or draws random numbers, so the graph cannot have it; return the tensor from there, use ops, or do \
                 this outside of the function",
            ));
        }
        // A copy: the function or its caller may change the tensor.
        Ok(self.insert(t, Source::Constant(t.copied()?)))
    }

    /// A view that no op made.
    fn view(&mut self, whole: ValueId, t: &Tensor) -> Result<ValueId> {
        let region = Region::of(&self.held[whole.at()], t).to_ints();
        let id = self.insert(t, Source::Computed);
        if let Some(histories) = &mut self.histories {
            histories.push(History { is_recorded: t.requires_grad(), is_cut: [false].into_iter().collect() });
        }
        self.graph.calls.push(Call {
            op: names::PART.get()?.clone(),
            attrs: [Attr::Ints(region.into())].into_iter().collect(),
            numbers: None,
            args: [Operand::Value(whole)].into_iter().collect(),
            outputs: [Some(id)].into_iter().collect(),
            is_wide: false,
            draws: false,
            origin: None,
            cut: Cut::default(),
        });
        Ok(id)
    }

    /// `frame` is that of the call.
    pub(super) fn record(
        &mut self,
        op: &OpRef,
        args: &[Arg<'_>],
        attrs: &[Attr],
        outputs: &Produced,
        frame: &Frame,
    ) -> Result<()> {
        let draws = frame.draws;
        let mut operands = SmallVec::new();
        let (mut is_cut, mut cut) = (SmallVec::new(), Cut::default());
        for (i, arg) in args.iter().enumerate() {
            let mut is_without = false;
            operands.push(match arg {
                Arg::None => Operand::None,
                Arg::Number(value) => Operand::Number(*value),
                Arg::Tensor(t) => {
                    let (id, without) = self.handle(t).map_err(|e| e.context(format!("op '{}'", op.name)))?;
                    is_without = without;
                    if self.held[id.at()].requires_grad() {
                        cut.has_history = true;
                        cut.is_off |= frame.is_quiet;
                        if self.is_detached(id, t) {
                            cut.detached.push(i);
                        }
                    }
                    Operand::Value(id)
                }
            });
            is_cut.push(is_without);
        }
        let mut results: SmallVec<[Option<ValueId>; 1]> = SmallVec::new();
        for (k, t) in outputs.iter().enumerate() {
            let is_input = matches!(op.outputs.get(k).map(|o| o.role), Some(Role::Mutates(_)));
            results.push(match t {
                None => None,
                Some(t) if is_input => Some(self.operand(t)?),
                // It is an argument, or a part that was computed before.
                Some(t) if self.windows.contains_key(&Window::of(t)) && !self.has_own_history(t) => None,
                Some(t) => Some(self.insert_result(t)),
            });
        }
        if let Some(histories) = &mut self.histories {
            histories.push(History { is_recorded: is_grad_enabled(), is_cut });
            let differs = |arg: &Arg<'_>| matches!(arg, Arg::Tensor(t) if histories.differ(t));
            if draws || args.iter().any(differs) {
                outputs.iter().flatten().for_each(|t| histories.note_difference(t));
            }
        }
        let attrs = attrs.iter().cloned().collect();
        let call = Call {
            op: op.clone(),
            attrs,
            numbers: None,
            args: operands,
            outputs: results,
            is_wide: is_wide(),
            draws,
            origin: None,
            cut,
        };
        self.graph.calls.push(call);
        Ok(())
    }

    /// Whether a tensor lacks the history of its value.
    pub fn is_detached(&self, id: ValueId, t: &Tensor) -> bool {
        is_grad_enabled() && !t.requires_grad() && self.held[id.at()].requires_grad()
    }

    /// Ends the frame of a body over whole tensors.
    pub(super) fn close(&mut self, op: &OpRef, args: &[Arg<'_>], attrs: &[Attr], outputs: &Produced) -> Result<()> {
        let Some(mut frame) = self.frames.pop() else { return Ok(()) };
        let is_computed = self.graph.calls.len() > frame.calls;
        let mut is_known = |t: &Tensor| {
            self.windows.contains_key(&Window::of(t))
                || is_computed && self.memories.contains_key(&Arc::as_ptr(t.storage())) && self.operand(t).is_ok()
        };
        if !frame.reads && outputs.iter().flatten().all(&mut is_known) {
            return Ok(());
        }
        frame.draws = self.discard(&frame);
        self.record(op, args, attrs, outputs, &frame)
    }

    /// Removes the calls of a frame, and tells whether it took random numbers.
    pub(super) fn discard(&mut self, frame: &Frame) -> bool {
        let mut draws = self.graph.calls[frame.calls..].iter().any(|call| call.draws);
        for value in self.graph.values[frame.values..].iter_mut().filter(|v| matches!(v.source, Source::Key(..))) {
            (value.source, draws) = (Source::Computed, true);
        }
        let mut lost: Vec<ValueId> =
            self.graph.calls.drain(frame.calls..).flat_map(|call| call.computes().collect::<Vec<_>>()).collect();
        // Tensors from before that only the body used.
        for (at, value) in self.graph.values.iter_mut().enumerate().skip(frame.values) {
            if matches!(value.source, Source::Captured(_)) {
                value.source = Source::Computed;
                lost.push(ValueId(at as u32));
            }
        }
        for id in lost {
            let held = self.held[id.at()].clone();
            self.forget_window(&held);
            let key = Arc::as_ptr(held.storage());
            if let Some((_, values)) = self.memories.get_mut(&key) {
                values.retain(|other| *other != id);
                if values.is_empty() {
                    self.memories.remove(&key);
                }
            }
        }
        if let Some(histories) = &mut self.histories {
            histories.truncate(frame.calls);
        }
        self.hidden.push(frame.birth..births());
        draws
    }

    pub(super) fn last_call_takes(&mut self, names: &[&str]) -> Result<()> {
        let Some(call) = self.graph.calls.last_mut() else {
            return Err(Error::runtime("no call was recorded"));
        };
        let position = |name: &&str| call.op.attrs.iter().position(|a| a.name == *name);
        let positions: Option<SmallVec<[usize; 4]>> = names.iter().map(position).collect();
        let positions = positions.ok_or_else(|| {
            Error::value(format!(
                "the last call, of op '{}', lacks one of the attributes {}",
                call.op.name,
                names.join(", ")
            ))
        })?;
        call.numbers = Some((positions, self.numbers));
        self.numbers += names.len();
        Ok(())
    }
}
