//! Interruption of long calls: loops check for a request to stop.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use minitensor_kernels::threads;

use crate::error::{Error, Result};
use crate::scoped::Scoped;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static POLL: OnceLock<fn() -> Result<()>> = OnceLock::new();

thread_local! {
    /// Whether the code of this thread must not be interrupted.
    static IS_DEFERRED: Cell<bool> = const { Cell::new(false) };
    /// Whether a check on this thread has failed.
    static IS_NOTICED: Cell<bool> = const { Cell::new(false) };
}

/// Requests that running calls stop.
pub fn request() {
    reach_kernels();
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Clears the request.
pub fn clear() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// Sets a function that loops also check, such as one for the host language's signals. Its error ends the call. Only the
/// first call of `set_poll` has an effect.
pub fn set_poll(poll: fn() -> Result<()>) {
    let _ = POLL.set(poll);
    reach_kernels();
}

/// Makes loops of kernels check for interrupts. Before the first use of this module, they need not check.
fn reach_kernels() {
    minitensor_kernels::stop::set_poll(|| check().map_err(|error| Box::new(error) as _));
}

/// An error if a stop was requested, or if another thread of the same loop has stopped. Loops call it at intervals.
#[inline]
pub fn check() -> Result<()> {
    if threads::has_stopped() {
        return Err(Error::runtime("interrupted"));
    }
    // The thread that has started a loop checks for all of them.
    if IS_DEFERRED.get() || threads::is_helper() {
        return Ok(());
    }
    let result = match REQUESTED.load(Ordering::Relaxed) {
        true => Err(Error::runtime("interrupted")),
        false => POLL.get().map_or(Ok(()), |poll| poll()),
    };
    result.inspect_err(|_| IS_NOTICED.set(true))
}

/// Runs code that must not be interrupted.
pub(crate) fn deferred<T>(run: impl FnOnce() -> T) -> T {
    let _deferred = Scoped::new(&IS_DEFERRED, true);
    run()
}

/// Runs code, and also returns whether it was interrupted.
pub(crate) fn noticed<T>(run: impl FnOnce() -> T) -> (T, bool) {
    IS_NOTICED.set(false);
    let result = run();
    (result, IS_NOTICED.get())
}
