//! Computes postponed calls before an access to their memory.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::batch::Batch;
use super::mode::{self, Access, Ended};
use super::{compiled, failure, pending};
use crate::error::{Error, Result};
use crate::fork::lock::try_lock;
use crate::interrupt;
use crate::stop::raise;
use crate::tensor::Tensor;

/// The calls that are being computed, or whose computation was interrupted. A thread holds the lock while it computes.
static CURRENT: Mutex<Option<Batch>> = Mutex::new(None);

/// Runs a function while this thread does not hold the lock of the host language's interpreter.
pub type Detach = fn(&mut (dyn FnMut() + Send));

static DETACH: OnceLock<Detach> = OnceLock::new();

/// Sets the function that releases the lock of the interpreter. Only the first call has an effect.
pub fn set_detach(detach: Detach) {
    let _ = DETACH.set(detach);
}

/// Computes all postponed calls of all threads, as far as their results are in use.
///
/// # Errors
/// If the computation is interrupted, or runs out of memory. It goes on at the next call. The error of a single call is
/// that of the later reads of its results.
pub fn compute() -> Result<()> {
    if mode::access() == Access::Proceeds {
        return Ok(());
    }
    let mut result = Ok(());
    let mut run = || result = compute_now();
    match DETACH.get() {
        Some(detach) => detach(&mut run),
        None => run(),
    }
    result
}

fn compute_now() -> Result<()> {
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    let _paused = mode::paused(Access::Proceeds);
    finish(&mut current)?;
    if let Some(pending) = pending::take() {
        // Compiling is not repeated.
        *current = Some(interrupt::deferred(|| Batch::new(*pending)));
    }
    finish(&mut current)
}

fn finish(current: &mut Option<Batch>) -> Result<()> {
    if let Some(batch) = current {
        batch.run()?;
        *current = None;
    }
    Ok(())
}

/// Computes the elements of a tensor if a call postponed that.
///
/// # Errors
/// The error of [`compute`], or of the call that should have computed the tensor.
pub(crate) fn ready(t: &Tensor) -> Result<()> {
    let storage = t.storage();
    if !storage.is_postponed() {
        return Ok(());
    }
    compute()?;
    // The memory may be postponed again, by calls of another thread.
    match failure::of(storage) {
        Some(error) => Err(error),
        None if storage.data().is_null() => Err(Error::runtime(
            "cannot read a tensor of lazy mode while postponed calls are being computed, as in a signal handler or a finalizer",
        )),
        None => Ok(()),
    }
}

/// Prepares an access to the elements of a tensor. Where errors cannot be returned, it unwinds with them.
#[cold]
pub(crate) fn access(t: &Tensor) {
    if mode::ends_body() {
        resume_unwind(Box::new(Ended));
    }
    if let Err(error) = ready(t) {
        raise(error);
    }
}

/// Acquires all locks for a fork. `None` if another thread holds one of them.
pub(crate) fn try_hold() -> Option<Vec<Box<dyn Any>>> {
    // A thread that computes holds the first lock. It may fork in a signal handler.
    let current = if mode::access() == Access::Proceeds { Box::new(()) } else { try_lock(&CURRENT)? };
    Some(vec![current, pending::try_hold()?, compiled::try_hold()?, failure::try_hold()?])
}
