//! What plugins write to the log. They may do so on any thread, also while the caller of their op waits for that thread and holds
//! the interpreter: so a message waits until somebody passes who holds it anyway.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

static IS_ANY: AtomicBool = AtomicBool::new(false);
static WAITING: Mutex<Vec<(u32, String)>> = Mutex::new(Vec::new());
/// A plugin that writes on and on fills no memory with it.
const MOST: usize = 10_000;

/// Takes a message.
pub fn write(level: u32, message: &str) {
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
