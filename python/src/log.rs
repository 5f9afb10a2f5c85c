//! What plugins write to the log. They may do so on any thread, also while the caller of their op waits for that thread and holds
//! the interpreter: then a message waits until somebody passes who holds it anyway.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use minitensor::fork::try_lock;
use pyo3::prelude::*;

/// How many calls are under way that hold the interpreter.
static HOLDERS: AtomicUsize = AtomicUsize::new(0);
static IS_ANY: AtomicBool = AtomicBool::new(false);
static WAITING: Mutex<Vec<(u32, String)>> = Mutex::new(Vec::new());
/// A plugin that writes on and on fills no memory with it.
const MOST: usize = 10_000;

/// Holds the messages' lock for a fork, unless another thread holds it.
pub fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&WAITING)
}

/// Runs what may be a plugin's code while this thread holds the interpreter. It doesn't panic.
#[inline]
pub fn holding<T>(f: impl FnOnce() -> T) -> T {
    HOLDERS.fetch_add(1, Ordering::Relaxed);
    let result = f();
    HOLDERS.fetch_sub(1, Ordering::Relaxed);
    result
}

/// Takes a message.
pub fn write(level: u32, message: &str) {
    keep(level, message);
    if HOLDERS.load(Ordering::Relaxed) == 0 {
        // There may be no interpreter any more, or it is about to end.
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

/// Hands all messages to Python's logger `minitensor.plugins`.
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
        // What goes wrong with it is nothing that a plugin's caller should fail of.
        if let Err(error) = written {
            error.write_unraisable(py, None);
        }
    }
}
