//! [`Recording`]: records the calls of a thread as a [`Graph`].
//!
//! The calls run as always. A call of a loop becomes a call of the graph. A body over whole tensors becomes the calls
//! that it makes, unless it reads elements or takes random numbers: then it is one call itself. Code outside of ops
//! that reads elements cannot be recorded, and is an error.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::batch::{Histories, History};
use super::ir::{Call, Cut, Graph, Operand, Source, Value, ValueId};
use super::window::Window;
use crate::attr::Attr;
use crate::autograd::{GradMeta, is_grad_enabled, next_sequence};
use crate::dispatch::Produced;
use crate::dispatch::capture::{self, Counted};
use crate::error::{Error, Result};
use crate::op::by_name::names;
use crate::op::{Arg, Backward, Body, OpDef, OpRef, Role};
use crate::precision::is_wide;
use crate::random::Block;
use crate::tensor::{Device, Region, Storage, Tensor};

thread_local! {
    /// A pointer, because few bytes are available for statics of threads of a library that is loaded at run time.
    static RECORDER: RefCell<Option<Box<Recorder>>> = const { RefCell::new(None) };
    /// What calls and reads of this thread mean to the recorder.
    static STATE: Cell<State> = const { Cell::new(State::Off) };
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Nothing is recorded.
    Off,
    /// Calls are recorded.
    On,
    /// The code of a call that is recorded as a whole.
    Inside,
}

/// The number of the next storage that is created during a recording; 0 is for all others.
static BIRTHS: AtomicU64 = AtomicU64::new(2);

/// Finds the position in the user's code, for messages.
static LOCATE: OnceLock<fn() -> Option<String>> = OnceLock::new();

/// Sets the function that finds the position in the user's code. Only the first call has an effect.
pub fn set_locate(locate: fn() -> Option<String>) {
    let _ = LOCATE.set(locate);
}

/// The position in the user's code.
pub(crate) fn locate() -> Option<String> {
    LOCATE.get().and_then(|locate| locate())
}

/// Whether this thread records a graph.
pub fn is_recording() -> bool {
    STATE.get() != State::Off
}

/// The number of a storage that is created now. It is odd if the storage belongs to a call that is recorded as a whole.
#[cold]
pub(crate) fn birth() -> u64 {
    match STATE.get() {
        State::Off => 0,
        state => BIRTHS.fetch_add(2, Ordering::Relaxed) + u64::from(state == State::Inside),
    }
}

/// Runs code that only prepares a call, such as a copy for the gradient, so that it is recorded even inside of a call.
pub(crate) fn outside<R>(run: impl FnOnce() -> R) -> R {
    if !capture::is_active() {
        return run();
    }
    let _restore = (STATE.get() == State::Inside).then(|| Restore(STATE.replace(State::On)));
    run()
}

/// Runs code that is not part of the recorded function, such as code that defines an op.
pub(crate) fn apart<R>(run: impl FnOnce() -> R) -> R {
    let _restore = pause();
    run()
}

/// Restores what calls of this thread mean to the recorder.
pub(crate) struct Restore(State);

/// Records nothing, until the result is dropped.
pub(crate) fn pause() -> Restore {
    Restore(STATE.replace(State::Off))
}

impl Drop for Restore {
    fn drop(&mut self) {
        STATE.set(self.0);
    }
}

/// Notes that the elements of a tensor are read or written by code that is not recorded.
#[cold]
pub(crate) fn note_access(t: &Tensor) {
    with_recorder(|recorder| recorder.note_access(t));
}

/// Notes that a key was taken from the global generator, for so many numbers.
pub(crate) fn note_key(key: &Tensor, n: usize, block: Block) {
    with_recorder(|recorder| recorder.insert(key, Source::Key(n, block)));
    if STATE.get() == State::Inside {
        // The call that is recorded as a whole draws.
        let note =
            |recorder: &mut Recorder| recorder.frames.last_mut().is_some_and(|f| std::mem::replace(&mut f.draws, true));
        RECORDER.with(|cell| cell.try_borrow_mut().ok()?.as_deref_mut().map(note));
    }
}

/// What [`refuse`] says about memory of another library: it may change between runs, and nothing shows that.
pub const READS_AN_ARRAY: &str = "reads an array of another library";

/// Notes that the function does something that a graph cannot repeat. The body of an op may do it.
pub fn refuse(what: &str) {
    with_recorder(|recorder| match recorder.frames.last_mut() {
        // A batch runs once.
        _ if what == READS_AN_ARRAY && recorder.histories.as_ref().is_some_and(|h| !h.all_differ()) => {}
        Some(frame) => frame.reads = true,
        None => recorder.fail(what),
    });
}

/// Notes that the accumulated gradient of a leaf is read or replaced.
pub(crate) fn note_gradient(meta: &Arc<GradMeta>, now: &dyn Fn() -> Option<Tensor>) {
    with_recorder(|recorder| {
        if !recorder.gradients.iter().any(|(known, _)| Arc::ptr_eq(known, meta)) {
            recorder.gradients.push((meta.clone(), now()));
        }
    });
}

/// Notes that a tensor begins to require a gradient.
pub(crate) fn note_leaf(meta: &Arc<GradMeta>) {
    with_recorder(|recorder| recorder.leaves.push(meta.clone()));
}

/// Whether copies and conversions of a tensor must be calls of ops, so that they are recorded.
pub(crate) fn records(t: &Tensor) -> bool {
    STATE.get() == State::On && t.device() != Device::Meta && {
        let records = |r: &Recorder| r.is_traced(t) && !r.frames.last().is_some_and(|frame| frame.copies);
        RECORDER.with(|cell| cell.try_borrow().is_ok_and(|recorder| recorder.as_deref().is_some_and(records)))
    }
}

/// States that these attributes of the last recorded call are numbers that each run sets, in the order of the names.
///
/// # Errors
/// If the last call has no such attributes.
pub fn last_call_takes(names: &[&str]) -> Result<()> {
    with_recorder(|recorder| recorder.last_call_takes(names)).unwrap_or(Ok(()))
}

fn with_recorder<R>(run: impl FnOnce(&mut Recorder) -> R) -> Option<R> {
    if STATE.get() != State::On {
        return None;
    }
    // The recorder itself uses tensors.
    RECORDER.with(|cell| cell.try_borrow_mut().ok()?.as_deref_mut().map(run))
}

/// Records the calls of this thread until it ends.
#[must_use = "dropping it discards the recorded calls"]
pub struct Recording {
    /// The recording that this one interrupts.
    outer: (Option<Box<Recorder>>, State),
    _counted: Counted,
    _not_send: PhantomData<*const ()>,
}

impl Recording {
    /// Starts to record. `inputs` are the arguments of the graph.
    ///
    /// # Errors
    /// If this thread is recording already.
    pub fn start(inputs: &[Tensor]) -> Result<Recording> {
        if is_recording() {
            return Err(Error::runtime("this thread records a graph already"));
        }
        Ok(Recording::begin(inputs, None))
    }

    /// Starts to record a function that leaves this process: ops made at run time become the calls that they make, if their gradient
    /// does, too. All other ops are calls of the graph, since another process has them by name.
    ///
    /// # Errors
    /// If this thread is recording already.
    pub fn start_portable(inputs: &[Tensor]) -> Result<Recording> {
        let recording = Recording::start(inputs)?;
        recording.with(|recorder| recorder.is_portable = true);
        Ok(recording)
    }

    /// Starts to record a function of one example, for a run with the whole batch. Interrupts another recording.
    pub(super) fn of_example(example: impl FnOnce() -> Result<Vec<Tensor>>) -> Result<(Recording, Vec<Tensor>)> {
        let examples = {
            let _restore = pause();
            example()?
        };
        Ok((Recording::begin(&examples, Some(Histories::new(is_recording()))), examples))
    }

    fn begin(inputs: &[Tensor], histories: Option<Histories>) -> Recording {
        let first_birth = BIRTHS.load(Ordering::Relaxed);
        let mut recorder = Recorder { first_birth, first_node: next_sequence(), histories, ..Recorder::default() };
        inputs.iter().for_each(|t| recorder.input(t));
        let outer = RECORDER.with(|cell| cell.borrow_mut().replace(Box::new(recorder)));
        Recording { outer: (outer, STATE.replace(State::On)), _counted: Counted::new(), _not_send: PhantomData }
    }

    /// Works with the recorder.
    pub(super) fn with<R>(&self, run: impl FnOnce(&mut Recorder) -> R) -> R {
        RECORDER.with(|cell| run(cell.borrow_mut().as_deref_mut().expect("the recording has not ended")))
    }

    /// Ends, and returns what was recorded.
    pub(super) fn end(self) -> Recorder {
        *RECORDER.with(|cell| cell.borrow_mut().take()).expect("the recording has not ended")
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let (outer, state) = std::mem::replace(&mut self.outer, (None, State::Off));
        STATE.set(state);
        let recorder = RECORDER.with(|cell| std::mem::replace(&mut *cell.borrow_mut(), outer));
        drop(recorder);
    }
}

/// A running body.
struct Frame {
    /// The number of calls and births before it.
    calls: usize,
    birth: u64,
    /// The number of values before it.
    values: usize,
    /// Whether it is the body of an op that copies.
    copies: bool,
    /// Whether it reads elements.
    reads: bool,
    /// Whether the body of a call that is recorded as a whole takes random numbers.
    draws: bool,
    /// Whether the call of the function that led to it does not record gradients.
    is_quiet: bool,
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
    memories: HashMap<*const Storage, (u32, Vec<ValueId>)>,
    frames: Vec<Frame>,
    first_birth: u64,
    /// The number of the first node of a history in the recording.
    pub first_node: u64,
    /// Births in bodies that are recorded as one call. Unless they are results, a graph cannot have their tensors.
    hidden: Vec<Range<u64>>,
    /// What a run with a batch needs besides the graph.
    pub histories: Option<Histories>,
    /// Whether the graph is for another process.
    is_portable: bool,
}

impl Recorder {
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
        let next = self.memories.len() as u32;
        let (memory, values) = self.memories.entry(Arc::as_ptr(t.storage())).or_insert_with(|| (next, Vec::new()));
        values.push(id);
        if let (Some(histories), Source::Input(_) | Source::Key(..)) = (&mut self.histories, &source) {
            histories.note_difference(t);
        }
        let (shape, dtype, device) = (t.shape().clone(), t.dtype(), t.device());
        self.graph.values.push(Value { shape, dtype, device, memory: *memory, source });
        self.held.push(t.clone());
        self.recorded.push(t.storage().recorded());
        self.windows.entry(Window::of(t)).or_insert(id);
        id
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
    fn is_traced(&self, t: &Tensor) -> bool {
        let values = self.memories.get(&Arc::as_ptr(t.storage())).map(|(_, values)| values);
        match values {
            Some(values) => !values.iter().all(|id| matches!(self.graph.value(*id).source, Source::Constant(_))),
            None => t.storage().birth() < self.first_birth,
        }
    }

    fn note_access(&mut self, t: &Tensor) {
        if t.device() == Device::Meta || !self.is_traced(t) || self.histories.as_ref().is_some_and(|h| !h.differ(t)) {
            return;
        }
        match self.frames.last_mut() {
            Some(frame) => frame.reads = true,
            None => self.fail("reads the elements of a tensor"),
        }
    }

    fn fail(&mut self, what: &str) {
        if self.failure.is_some() {
            return;
        }
        let place = locate().map_or(String::new(), |place| format!(" ({place})"));
        let why = match self.histories {
            Some(_) => "which differ for each example of mt.vmap",
            None => "which its graph cannot repeat",
        };
        self.failure = Some(Error::runtime(format!(
            "the function {what}{place}, {why}; choose with mt.where or mt.cond, loop with mt.while_loop or mt.scan, \
             or do this outside of the function"
        )));
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
            let is_it =
                |(_, before): &&(Arc<GradMeta>, Option<Tensor>)| before.as_ref().is_some_and(|g| g.shares_storage(t));
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
    fn record(
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
    fn close(&mut self, op: &OpRef, args: &[Arg<'_>], attrs: &[Attr], outputs: &Produced) -> Result<()> {
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
    fn discard(&mut self, frame: &Frame) -> bool {
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
            let held = &self.held[id.at()];
            self.windows.remove(&Window::of(held));
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
        self.hidden.push(frame.birth..BIRTHS.load(Ordering::Relaxed));
        draws
    }

    fn last_call_takes(&mut self, names: &[&str]) -> Result<()> {
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

#[cold]
fn changes(op: &OpDef, t: &Tensor) -> Error {
    Error::runtime(format!(
        "op '{}' changes a tensor of shape {} in place, which is an argument of the function of mt.vmap, or from outside \
         of it; return a new tensor, or change a clone()",
        op.name,
        t.shape()
    ))
}

/// Runs a call, and records it if this thread records a graph.
pub(crate) fn call(
    op: &OpRef,
    args: &[Arg<'_>],
    attrs: &[Attr],
    proceed: &mut dyn FnMut() -> Result<Produced>,
) -> Result<Produced> {
    if STATE.get() != State::On {
        return proceed();
    }
    let is_meta = args.iter().any(|arg| matches!(arg, Arg::Tensor(t) if t.device() == Device::Meta));
    // The Python code of an op may have state. Its calls are recorded only if the gradient needs them.
    let is_recorded = || {
        let requires_grad = |arg: &Arg<'_>| matches!(arg, Arg::Tensor(t) if t.requires_grad());
        is_grad_enabled() && matches!(op.backward, Backward::Composite) && args.iter().any(requires_grad)
    };
    // A run with a batch records the gradients of calls, not of parts of calls.
    let has_gradient = || {
        let requires_grad = |arg: &Arg<'_>| matches!(arg, Arg::Tensor(t) if t.requires_grad());
        is_grad_enabled()
            && !matches!(op.backward, Backward::Composite)
            && args.iter().any(requires_grad)
            && with_recorder(|recorder| recorder.histories.is_some()).unwrap_or(false)
    };
    let is_portable = with_recorder(|recorder| recorder.is_portable).unwrap_or(false);
    let is_whole = is_meta
        || match &op.body {
            Body::Tensor(_) | Body::Dynamic(_) if is_portable => {
                !matches!((op, &op.backward), (OpRef::Shared(_), Backward::Composite))
            }
            Body::Tensor(_) | Body::Dynamic(_) if has_gradient() => true,
            Body::Tensor(_) => false,
            Body::Dynamic(body) => body.is_interpreted && !is_recorded(),
            _ => true,
        };
    let frame = |recorder: &Recorder| Frame {
        calls: recorder.graph.calls.len(),
        values: recorder.graph.values.len(),
        birth: BIRTHS.load(Ordering::Relaxed),
        copies: [names::CLONE.name(), names::ASTYPE.name()].contains(&op.name.as_ref()),
        reads: false,
        draws: false,
        is_quiet: recorder.frames.first().map_or(!is_grad_enabled(), |outer| outer.is_quiet),
    };
    let opened = with_recorder(|recorder| {
        if let Some(error) = &recorder.failure {
            return Err(error.clone());
        }
        // Before the call: the copy of a constant has the elements that the call changes.
        for (i, arg) in args.iter().enumerate() {
            if let (Arg::Tensor(t), true) = (arg, op.parameter(i).mutated && !is_meta) {
                if recorder.histories.is_some() && !recorder.is_new(t) {
                    return Err(changes(op, t));
                }
                recorder.operand(t)?;
            }
        }
        recorder.ops.entry(&raw const **op).or_insert_with(|| op.clone());
        let frame = frame(recorder);
        recorder.frames.push(frame);
        Ok(recorder.frames.len())
    });
    let Some(depth) = opened.transpose()? else { return proceed() };
    let result = {
        let _restore = is_whole.then(|| Restore(STATE.replace(State::Inside)));
        proceed()
    };
    with_recorder(|recorder| {
        recorder.frames.truncate(depth);
        let is_meta = is_meta || matches!(&result, Ok(all) if all.iter().flatten().any(|t| t.device() == Device::Meta));
        let recorded = match &result {
            Ok(outputs) if !is_meta && is_whole => {
                let Some(frame) = recorder.frames.pop() else { return Ok(()) };
                recorder.record(op, args, attrs, outputs, &frame)
            }
            Ok(outputs) if !is_meta => recorder.close(op, args, attrs, outputs),
            _ => {
                if let Some(frame) = recorder.frames.pop() {
                    recorder.discard(&frame);
                }
                Ok(())
            }
        };
        // The calls of a body that reads elements are discarded at its end.
        if recorder.frames.last().is_some_and(|outer| outer.reads) { Ok(()) } else { recorded }
    })
    .unwrap_or(Ok(()))?;
    result
}
