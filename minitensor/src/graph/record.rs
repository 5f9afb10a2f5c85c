//! [`Recording`]: records the calls of a thread as a [`Graph`].
//!
//! The calls run as always. A call of a loop becomes a call of the graph. A body over whole tensors becomes the calls
//! that it makes, unless it reads elements or takes random numbers: then it is one call itself. Code outside of ops
//! that reads elements cannot be recorded, and is an error.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::batch::Histories;
use super::ir::Source;
use super::recorder::{Frame, Recorder};
use crate::attr::Attr;
use crate::autograd::{GradMeta, is_grad_enabled};
use crate::dispatch::Produced;
use crate::dispatch::capture::{self, Counted};
use crate::error::{Error, Result};
use crate::op::by_name::names;
use crate::op::{Arg, Backward, Body, OpDef, OpRef};
use crate::random::Block;
use crate::scoped::Scoped;
use crate::tensor::{Device, Tensor};

thread_local! {
    /// A pointer, because few bytes are available for statics of threads of a library that is loaded at run time.
    static RECORDER: RefCell<Option<Box<Recorder>>> = const { RefCell::new(None) };
    /// What calls and reads of this thread mean to the recorder.
    static STATE: Cell<State> = const { Cell::new(State::Off) };
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum State {
    /// Nothing is recorded.
    Off,
    /// Calls are recorded.
    On,
    /// The code of a call that is recorded as a whole.
    Inside,
}

/// The number of the next storage that is created during a recording; 0 is for all others.
static BIRTHS: AtomicU64 = AtomicU64::new(2);

/// The number of the next storage that is created during a recording.
pub(super) fn births() -> u64 {
    BIRTHS.load(Ordering::Relaxed)
}

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
    let _restore = (STATE.get() == State::Inside).then(|| Scoped::new(&STATE, State::On));
    run()
}

/// Runs code that is not part of the recorded function, such as code that defines an op.
pub(crate) fn apart<R>(run: impl FnOnce() -> R) -> R {
    let _restore = pause();
    run()
}

/// Records nothing, until the result is dropped.
pub(crate) fn pause() -> Scoped<State> {
    Scoped::new(&STATE, State::Off)
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
    let advice = match what {
        READS_AN_ARRAY => "convert the array with mt.asarray() outside of the function, and pass the tensor",
        _ => "do this outside of the function",
    };
    with_recorder(|recorder| match recorder.frames.last_mut() {
        // A batch runs once.
        _ if what == READS_AN_ARRAY && recorder.histories.as_ref().is_some_and(|h| !h.all_differ()) => {}
        Some(frame) => frame.reads = true,
        None => recorder.fail(what, advice),
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
        let recorder = Recorder::new(inputs, histories);
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
        birth: births(),
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
        let _restore = is_whole.then(|| Scoped::new(&STATE, State::Inside));
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
        recorder.release_unused();
        // The calls of a body that reads elements are discarded at its end.
        if recorder.frames.last().is_some_and(|outer| outer.reads) { Ok(()) } else { recorded }
    })
    .unwrap_or(Ok(()))?;
    result
}
