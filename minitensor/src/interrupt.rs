//! Stopping a long call: somebody asks, loops look.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Asks the calls under way to stop.
pub fn request() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Forgets the request.
pub fn clear() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// An error if stopping was asked for. Loops call it every now and then.
#[inline]
pub fn check() -> Result<()> {
    if REQUESTED.load(Ordering::Relaxed) { Err(Error::runtime("interrupted")) } else { Ok(()) }
}
