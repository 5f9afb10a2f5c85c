//! The log messages of plugins. A plugin may log on any thread, even while the caller of its op waits for that thread
//! and holds the interpreter. In that case a message is queued until a thread that holds the interpreter writes it.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use minitensor::fork::try_lock;
use pyo3::prelude::*;

/// The number of active calls that hold the interpreter.
static HOLDERS: AtomicUsize = AtomicUsize::new(0);
static IS_ANY: AtomicBool = AtomicBool::new(false);
static WAITING: Mutex<Vec<(u32, String)>> = Mutex::new(Vec::new());
/// The maximum number of queued messages, so that a plugin can't exhaust the memory.
const MOST: usize = 10_000;

/// Holds the lock of the messages for a fork, unless another thread holds it.
pub fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&WAITING)
}

/// Runs code that may be a plugin's while this thread holds the interpreter. It doesn't panic.
#[inline]
pub fn holding<T>(f: impl FnOnce() -> T) -> T {
    HOLDERS.fetch_add(1, Ordering::Relaxed);
    let result = f();
    HOLDERS.fetch_sub(1, Ordering::Relaxed);
    result
}

/// Queues a message.
pub fn write(level: u32, message: &str) {
    keep(level, message);
    if HOLDERS.load(Ordering::Relaxed) == 0 {
        // The interpreter may have ended, or may be about to end.
        Python::try_attach(flush);
    }
}

fn keep(level: u32, message: &str) {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if waiting.len() < MOST {
        waiting.push((level, message.to_owned()));
        IS_ANY.store(true, Ordering::Release);
    }
}

/// Passes all messages to the Python logger `minitensor.plugins`.
#[inline]
pub fn flush(py: Python<'_>) {
    if IS_ANY.load(Ordering::Acquire) {
        hand_over(py);
    }
}

#[cold]
fn hand_over(py: Python<'_>) {
    let waiting = {
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        IS_ANY.store(false, Ordering::Release);
        std::mem::take(&mut *waiting)
    };
    let logger = py.import("logging").and_then(|m| m.call_method1("getLogger", ("minitensor.plugins",)));
    for (level, message) in waiting {
        let written =
            logger.as_ref().map_err(|e| e.clone_ref(py)).and_then(|l| l.call_method1("log", (level, "%s", message)));
        // An error of the logger must not fail the call of a plugin.
        if let Err(error) = written {
            error.write_unraisable(py, None);
        }
    }
}
