//! Records op calls and their durations, by observing [dispatch](crate::op::dispatch).

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::dispatch::Produced;
use crate::dispatch::capture::{Observer, Observing, observe};
use crate::dtype::DType;
use crate::error::Result;
use crate::fork::lock;
use crate::op::{Arg, OpRef};
use crate::tensor::{Shape, Tensor};

/// One recorded call.
#[derive(Clone, Debug)]
pub struct Event {
    /// The name of the op.
    pub name: String,
    /// The dtype and shape of each tensor among the arguments.
    pub inputs: Vec<(DType, Shape)>,
    /// The number of bytes of the outputs, without outputs that share memory with an input.
    pub bytes: usize,
    /// The calling thread. Threads are numbered from 0 in the order of their first calls.
    pub thread: u64,
    /// The start of the call, relative to the start of the profile.
    pub start: Duration,
    /// The duration, including nested calls.
    pub duration: Duration,
    /// The duration without nested calls.
    pub self_time: Duration,
}

/// Records the calls of all threads.
pub struct Profile {
    number: u64,
    observing: Option<Observing>,
}

/// The events of each profile, in the order of the ends of the calls. Calls are numbered in the order of their starts.
static EVENTS: Mutex<BTreeMap<u64, Vec<(u64, Event)>>> = Mutex::new(BTreeMap::new());

fn events() -> MutexGuard<'static, BTreeMap<u64, Vec<(u64, Event)>>> {
    EVENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Acquires the lock of the events for a [fork](crate::fork). `None` if another thread holds it.
pub(crate) fn try_hold() -> Option<Box<dyn Any>> {
    lock::try_lock(&EVENTS)
}

impl Profile {
    /// Starts recording.
    pub fn start() -> Profile {
        static PROFILES: AtomicU64 = AtomicU64::new(0);
        let number = PROFILES.fetch_add(1, Ordering::Relaxed);
        events().insert(number, Vec::new());
        Profile { number, observing: Some(observe(Arc::new(Recorder::new(number)))) }
    }

    /// Stops recording. Running calls are still recorded when they end.
    pub fn stop(&mut self) {
        self.observing = None;
    }

    /// The completed calls, in the order of their starts.
    pub fn events(&self) -> Vec<Event> {
        sorted(events().get(&self.number).cloned().unwrap_or_default())
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        self.stop();
        events().remove(&self.number);
    }
}

/// Sorts numbered calls by their starts. A nested call may start in the same tick of the clock as the outer call. The
/// outer call comes first, because its number is lower.
fn sorted(mut events: Vec<(u64, Event)>) -> Vec<Event> {
    events.sort_by_key(|(number, event)| (event.start, *number));
    events.into_iter().map(|(_, event)| event).collect()
}

struct Recorder {
    number: u64,
    began: Instant,
    /// The number of calls that have started.
    calls: AtomicU64,
}

impl Recorder {
    fn new(number: u64) -> Recorder {
        Recorder { number, began: Instant::now(), calls: AtomicU64::new(0) }
    }
}

thread_local! {
    /// The total duration of nested calls so far in the running call of this thread.
    static INNER: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static THREAD: u64 = {
        static THREADS: AtomicU64 = AtomicU64::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed)
    };
}

impl Observer for Recorder {
    fn call(&self, op: &OpRef, args: &[Arg<'_>], proceed: &mut dyn FnMut() -> Result<Produced>) -> Result<Produced> {
        let tensors = || args.iter().filter_map(|arg| if let Arg::Tensor(t) = arg { Some(*t) } else { None });
        let inputs = tensors().map(|t| (t.dtype(), t.shape().clone())).collect();
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let before = INNER.replace(Duration::ZERO);
        let start = Instant::now();
        let outputs = proceed();
        let duration = start.elapsed();
        let self_time = duration.saturating_sub(INNER.replace(before + duration));
        let is_new = |t: &&Tensor| !tensors().any(|input| input.shares_storage(t));
        let produced = outputs.iter().flatten().flatten();
        let bytes = produced.filter(is_new).map(|t| t.numel() * t.dtype().size()).sum();
        let event = Event {
            name: op.name.to_string(),
            inputs,
            bytes,
            thread: THREAD.with(|thread| *thread),
            start: start.duration_since(self.began),
            duration,
            self_time,
        };
        // A call may end after its profile was dropped.
        if let Some(events) = events().get_mut(&self.number) {
            events.push((call, event));
        }
        outputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, start: u64, duration: u64) -> Event {
        let (start, duration) = (Duration::from_nanos(start), Duration::from_nanos(duration));
        let name = name.to_string();
        Event { name, inputs: Vec::new(), bytes: 0, thread: 0, start, duration, self_time: duration }
    }

    #[test]
    fn an_outer_call_comes_before_the_calls_that_start_in_the_same_tick() {
        // In the order of their ends.
        let calls = [(2, "innermost", 40, 0), (1, "inner", 40, 0), (0, "outer", 40, 80), (3, "next", 120, 0)];
        let events = calls.map(|(number, name, start, duration)| (number, event(name, start, duration)));
        let names: Vec<String> = sorted(events.into()).into_iter().map(|event| event.name).collect();
        assert_eq!(names, ["outer", "inner", "innermost", "next"]);
    }
}
