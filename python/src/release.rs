//! Long calls: other Python threads run meanwhile, and Ctrl-C stops them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use minitensor::op::{Arg, Body, dispatch_one};
use minitensor::{Attr, Error, OpRef, Tensor, interrupt};
use pyo3::prelude::*;

use crate::error::{Raised, Result, guarded};
use crate::{exit, library, log};

/// From this many elements on, the interpreter is released during a call.
const RELEASE: usize = 32 * 1024;
/// From this many bytes of tensors on, it is released during a backward pass, which may go through all of them.
const RELEASE_BYTES: usize = 1 << 20;
/// How often a long call looks for signals.
const PERIOD: Duration = Duration::from_millis(50);

thread_local! {
    /// Whether Python handles signals on this thread.
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

/// From now on this is the thread on which Python handles signals. The thread that forks is that of the child.
pub fn become_main() {
    IS_MAIN.set(true);
}

/// Lets Python handle signals every now and then; on the main thread only, where Python handles them.
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
        // Ops written in Python release the interpreter in their parts.
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

/// Calls an op that gives one tensor.
#[inline]
pub fn call_one(py: Python<'_>, op: &OpRef, args: &[Arg<'_>], attrs: &[Attr]) -> Result<Tensor> {
    call(py, op, args, || dispatch_one(op, args, attrs))
}

/// How many elements a call goes through, roughly: inputs of different shapes may broadcast to their product.
fn work(args: &[Arg<'_>]) -> usize {
    let mut work = 0usize;
    let mut first = None;
    for t in args.iter().filter_map(|a| if let Arg::Tensor(t) = a { Some(t) } else { None }) {
        let same = first.get_or_insert(t.shape()) == &t.shape();
        work = if same { work + t.numel() } else { work.saturating_mul(t.numel()) };
    }
    work
}

/// Runs a backward pass or the like, whose work isn't known beforehand but is bounded by the memory held.
pub fn run<T: Send>(py: Python<'_>, who: &str, f: impl FnOnce() -> minitensor::Result<T> + Send) -> Result<T> {
    let run = || guarded(who, f);
    // A library's gradient may call ops from other threads.
    let is_short = minitensor::tensor::allocated_bytes() < RELEASE_BYTES && !library::is_any_open();
    let done = if is_short { log::holding(run) } else { exit::detach(py, run) };
    log::flush(py);
    Ok(done?)
}
