//! The end of the interpreter.
//!
//! While Python (before 3.14) shuts down, it ends each thread that requests the interpreter, by unwinding the thread's
//! stack. If the unwinding meets a Rust frame, the process aborts. Therefore, after Python runs its `atexit` functions,
//! no other thread enters Python from Rust any more: it waits for the end of the process. Python itself waits for
//! threads that run a Python function that was called from Rust, such as a hook.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::Result;

/// The maximum time to wait for such functions.
const PATIENCE: Duration = Duration::from_secs(10);

static IS_CLOSING: AtomicBool = AtomicBool::new(false);
/// The thread that ends the interpreter.
static CLOSER: OnceLock<ThreadId> = OnceLock::new();
/// The number of threads that are in Python, or about to be, after a call from Rust.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The nesting depth of calls from Rust to Python on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// True within [`detach`].
    static IS_DETACHED: Cell<bool> = const { Cell::new(false) };
}

fn enter() {
    if DEPTH.replace(DEPTH.get() + 1) == 0 {
        INSIDE.fetch_add(1, Ordering::SeqCst);
    }
}

fn leave() {
    DEPTH.set(DEPTH.get() - 1);
    if DEPTH.get() == 0 {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

fn must_wait() -> bool {
    IS_CLOSING.load(Ordering::SeqCst) && CLOSER.get() != Some(&std::thread::current().id())
}

/// Waits for the end of the process. The thread must not hold the interpreter.
fn wait_for_end() -> ! {
    if DEPTH.replace(0) > 0 {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
    loop {
        std::thread::park();
    }
}

/// Restores the state that [`attach`] and [`detach`] change, also if the call panics.
struct Restore {
    was_detached: bool,
    entered: bool,
}

impl Drop for Restore {
    fn drop(&mut self) {
        IS_DETACHED.set(self.was_detached);
        if self.entered {
            leave();
        }
    }
}

/// Calls `f`, which may run Python functions, while this thread holds the interpreter.
pub fn attach<R>(f: impl FnOnce(Python<'_>) -> R) -> R {
    let was_detached = IS_DETACHED.replace(false);
    enter();
    let _restore = Restore { was_detached, entered: true };
    if was_detached && must_wait() {
        wait_for_end();
    }
    Python::attach(|py| {
        let result = f(py);
        if must_wait() {
            // SAFETY: this thread holds the interpreter, and never returns to the frames below.
            unsafe { ffi::PyEval_SaveThread() };
            wait_for_end();
        }
        result
    })
}

/// Calls `f` while this thread doesn't hold the interpreter.
pub fn detach<R: Send>(py: Python<'_>, f: impl FnOnce() -> R + Send) -> R {
    let mut restore = Restore { was_detached: IS_DETACHED.replace(true), entered: false };
    py.detach(|| {
        let result = f();
        enter();
        restore.entered = true;
        if must_wait() {
            wait_for_end();
        }
        result
    })
}

/// Removes the parent's other threads from the state of a child process.
pub fn renew() {
    INSIDE.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
}

/// Runs when Python shuts down.
#[pyfunction]
fn _close(py: Python<'_>) {
    let _ = CLOSER.set(std::thread::current().id());
    IS_CLOSING.store(true, Ordering::SeqCst);
    let (own, end) = (usize::from(DEPTH.get() > 0), Instant::now() + PATIENCE);
    py.detach(|| {
        while INSIDE.load(Ordering::SeqCst) > own && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_close, m)?)?;
    m.py().import("atexit")?.call_method1("register", (m.getattr("_close")?,))?;
    Ok(())
}
