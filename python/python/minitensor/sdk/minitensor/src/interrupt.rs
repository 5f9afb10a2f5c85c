//! Stopping a long call: somebody asks, loops look.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static POLL: OnceLock<fn() -> Result<()>> = OnceLock::new();

/// Asks the calls under way to stop.
pub fn request() {
    reach_kernels();
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Forgets the request.
pub fn clear() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// Sets what loops ask besides, such as the host language's signals; its error ends the call that asked. The first one
/// stays.
pub fn set_poll(poll: fn() -> Result<()>) {
    let _ = POLL.set(poll);
    reach_kernels();
}

/// From now on loops of kernels ask, too. Until somebody may ask them to stop, they need not.
fn reach_kernels() {
    minitensor_kernels::stop::set_poll(|| check().map_err(|error| Box::new(error) as _));
}

/// An error if stopping was asked for. Loops call it every now and then.
#[inline]
pub fn check() -> Result<()> {
    if REQUESTED.load(Ordering::Relaxed) {
        return Err(Error::runtime("interrupted"));
    }
    POLL.get().map_or(Ok(()), |poll| poll())
}
