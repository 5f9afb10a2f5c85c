//! Calls of ops. A long call releases the GIL, so that other Python threads run at the same time.

use std::sync::atomic::{AtomicBool, Ordering};

use minitensor::op::{Arg, Body, dispatch_one};
use minitensor::{Attr, OpRef, Tensor};
use pyo3::prelude::*;

use super::{gil, log};
use crate::error::{Result, catch_panics};

/// The number of elements from which a call releases the GIL.
const LONG_CALL: usize = 32 * 1024;
/// The number of bytes held by tensors from which a backward pass releases the GIL; it may process all of them.
const LONG_PASS_BYTES: usize = 1 << 20;

/// True if a plugin library is loaded.
static HAS_LIBRARIES: AtomicBool = AtomicBool::new(false);

/// Records that a plugin library is loaded. Gradients of its ops may call ops from other threads, so that every
/// backward pass must release the GIL.
pub fn set_has_libraries() {
    HAS_LIBRARIES.store(true, Ordering::Relaxed);
}

/// Calls an op on these arguments.
#[inline]
pub fn call<T: Send>(
    py: Python<'_>,
    op: &OpRef,
    args: &[Arg<'_>],
    f: impl FnOnce() -> minitensor::Result<T> + Send,
) -> Result<T> {
    let run = || catch_panics(&op.name, f);
    let is_long = match &op.body {
        // Ops written in Python release the GIL in the ops that they call.
        Body::Dynamic(body) => !body.is_interpreted,
        Body::Arrays(_) => true,
        _ => work(args) >= LONG_CALL,
    };
    let done = match (is_long, op.is_of_library()) {
        (true, _) => gil::detach(py, run),
        (false, true) => log::deferred(run),
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

/// Creates a tensor of this many elements. Other Python threads run meanwhile if there are many.
pub fn create<T: Send>(
    py: Python<'_>,
    name: &str,
    elements: usize,
    f: impl FnOnce() -> minitensor::Result<T> + Send,
) -> Result<T> {
    run(py, name, elements >= LONG_CALL, f)
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

/// Runs a backward pass or a similar computation. Its work is not known in advance, but the memory held limits it.
pub fn pass<T: Send>(py: Python<'_>, name: &str, f: impl FnOnce() -> minitensor::Result<T> + Send) -> Result<T> {
    of_bytes(py, name, minitensor::tensor::allocated_bytes(), f)
}

/// Runs a computation that processes so many bytes.
pub fn of_bytes<T: Send>(
    py: Python<'_>,
    name: &str,
    bytes: usize,
    f: impl FnOnce() -> minitensor::Result<T> + Send,
) -> Result<T> {
    run(py, name, bytes >= LONG_PASS_BYTES || HAS_LIBRARIES.load(Ordering::Relaxed), f)
}

/// Runs a computation, without the GIL if it is long.
fn run<T: Send>(
    py: Python<'_>,
    name: &str,
    is_long: bool,
    f: impl FnOnce() -> minitensor::Result<T> + Send,
) -> Result<T> {
    let run = || catch_panics(name, f);
    let done = if is_long { gil::detach(py, run) } else { log::deferred(run) };
    log::flush(py);
    Ok(done?)
}
