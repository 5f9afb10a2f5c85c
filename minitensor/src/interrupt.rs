//! Interruption of long calls: loops check for a request to stop.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static POLL: OnceLock<fn() -> Result<()>> = OnceLock::new();

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

/// An error if a stop was requested. Loops call it at intervals.
#[inline]
pub fn check() -> Result<()> {
    if REQUESTED.load(Ordering::Relaxed) {
        return Err(Error::runtime("interrupted"));
    }
    POLL.get().map_or(Ok(()), |poll| poll())
}
