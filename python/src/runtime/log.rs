//! The log messages of plugins. A plugin may log on any thread, even while the caller of its op waits for that thread
//! and holds the GIL. In that case a message is queued until a thread that holds the GIL writes it.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use minitensor::fork::try_lock;
use pyo3::prelude::*;

/// The number of active calls that hold the GIL.
static CALLS_WITH_GIL: AtomicUsize = AtomicUsize::new(0);
static IS_ANY_QUEUED: AtomicBool = AtomicBool::new(false);
static QUEUE: Mutex<Vec<(u32, String)>> = Mutex::new(Vec::new());
/// The maximum number of queued messages, so that a plugin can't exhaust the memory.
const MAX_QUEUED: usize = 10_000;

/// Holds the lock of the messages for a fork, unless another thread holds it.
pub fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&QUEUE)
}

/// Runs code that may be a plugin's while this thread holds the GIL; its messages are queued. The code must not panic.
#[inline]
pub fn deferred<T>(f: impl FnOnce() -> T) -> T {
    CALLS_WITH_GIL.fetch_add(1, Ordering::Relaxed);
    let result = f();
    CALLS_WITH_GIL.fetch_sub(1, Ordering::Relaxed);
    result
}

/// Queues a message.
pub fn write(level: u32, message: &str) {
    enqueue(level, message);
    if CALLS_WITH_GIL.load(Ordering::Relaxed) == 0 {
        // The interpreter may have ended, or may be about to end.
        Python::try_attach(flush);
    }
}

fn enqueue(level: u32, message: &str) {
    let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    if queue.len() < MAX_QUEUED {
        queue.push((level, message.to_owned()));
        IS_ANY_QUEUED.store(true, Ordering::Release);
    }
}

/// Passes all messages to the Python logger `minitensor.plugins`.
#[inline]
pub fn flush(py: Python<'_>) {
    if IS_ANY_QUEUED.load(Ordering::Acquire) {
        write_all(py);
    }
}

#[cold]
fn write_all(py: Python<'_>) {
    let queue = {
        let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
        IS_ANY_QUEUED.store(false, Ordering::Release);
        std::mem::take(&mut *queue)
    };
    let logger = py.import("logging").and_then(|m| m.call_method1("getLogger", ("minitensor.plugins",)));
    for (level, message) in queue {
        let written =
            logger.as_ref().map_err(|e| e.clone_ref(py)).and_then(|l| l.call_method1("log", (level, "%s", message)));
        // An error of the logger must not fail the call of a plugin.
        if let Err(error) = written {
            error.write_unraisable(py, None);
        }
    }
}
