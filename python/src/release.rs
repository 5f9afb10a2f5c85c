//! Long calls: other Python threads run at the same time, and Ctrl-C stops them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use minitensor::op::{Arg, Body, dispatch_one};
use minitensor::{Attr, Error, OpRef, Tensor, interrupt};
use pyo3::prelude::*;

use crate::error::{Raised, Result, guarded};
use crate::{exit, library, log};

/// The number of elements from which a call releases the interpreter.
const RELEASE: usize = 32 * 1024;
/// The number of bytes held by tensors from which a backward pass releases the interpreter; it may process all of them.
const RELEASE_BYTES: usize = 1 << 20;
/// The interval at which a long call checks for signals.
const PERIOD: Duration = Duration::from_millis(50);

thread_local! {
    /// True if Python handles signals on this thread.
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

pub fn install(py: Python<'_>) -> Result<()> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    if main.eq(threading.call_method0("get_ident")?)? {
        become_main();
    }
    interrupt::set_poll(poll);
    Ok(())
}

/// Marks this thread as the one on which Python handles signals. After a fork, this is the forking thread.
pub fn become_main() {
    IS_MAIN.set(true);
}

/// Lets Python handle signals periodically, on the main thread only: Python handles signals there.
fn poll() -> minitensor::Result<()> {
    if !IS_MAIN.get() {
        return Ok(());
    }
    let now = Instant::now();
    let due = LAST.with(|last| match last.get() {
        Some(before) if now.duration_since(before) < PERIOD => false,
        _ => {
            last.set(Some(now));
            true
        }
    });
    if !due {
        return Ok(());
    }
    let look = |py: Python<'_>| {
        log::flush(py);
        py.check_signals()
    };
    exit::attach(look).map_err(|e| Error::from(Raised(e)))
}

/// Calls an op on these arguments.
#[inline]
pub fn call<T: Send>(
    py: Python<'_>,
    op: &OpRef,
    args: &[Arg<'_>],
    f: impl FnOnce() -> minitensor::Result<T> + Send,
) -> Result<T> {
    let run = || guarded(&op.name, f);
    let is_long = match &op.body {
        // Ops written in Python release the interpreter in the ops that they call.
        Body::Dynamic(body) => !body.is_interpreted,
        Body::Arrays(_) => true,
        _ => work(args) >= RELEASE,
    };
    let done = match (is_long, op.is_of_library()) {
        (true, _) => exit::detach(py, run),
        (false, true) => log::holding(run),
        (false, false) => run(),
    };
    log::flush(py);
    Ok(done?)
}

/// Calls an op with one output.
#[inline]
pub fn call_one(py: Python<'_>, op: &OpRef, args: &[Arg<'_>], attrs: &[Attr]) -> Result<Tensor> {
    call(py, op, args, || dispatch_one(op, args, attrs))
}

/// A rough estimate of the number of elements that a call processes. Inputs of different shapes may broadcast to their
/// product.
fn work(args: &[Arg<'_>]) -> usize {
    let mut work = 0usize;
    let mut first = None;
    for t in args.iter().filter_map(|a| if let Arg::Tensor(t) = a { Some(t) } else { None }) {
        let same = first.get_or_insert(t.shape()) == &t.shape();
        work = if same { work + t.numel() } else { work.saturating_mul(t.numel()) };
    }
    work
}

/// Runs a backward pass or a similar computation. Its work isn't known in advance, but the memory held limits it.
pub fn run<T: Send>(py: Python<'_>, who: &str, f: impl FnOnce() -> minitensor::Result<T> + Send) -> Result<T> {
    let run = || guarded(who, f);
    // The gradient of a plugin may call ops from other threads.
    let is_short = minitensor::tensor::allocated_bytes() < RELEASE_BYTES && !library::is_any_open();
    let done = if is_short { log::holding(run) } else { exit::detach(py, run) };
    log::flush(py);
    Ok(done?)
}
