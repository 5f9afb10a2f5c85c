//! The end of the interpreter.
//!
//! While Python shuts down, it ends each thread that asks for the interpreter, by unwinding the thread's stack (before Python
//! 3.14). Where that meets a frame of Rust, the process aborts. So from the moment when Python runs its `atexit` functions, no
//! other thread goes from Rust to Python any more: it waits for the process to end. Python itself waits for threads that run a
//! Python function, such as a hook, that was called from Rust.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::Result;

/// Functions that take longer are not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

static IS_CLOSING: AtomicBool = AtomicBool::new(false);
/// The thread that ends the interpreter.
static CLOSER: OnceLock<ThreadId> = OnceLock::new();
/// Threads that are in Python by way of Rust, or about to be.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How often this thread went from Rust to Python and isn't back.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Whether it is within [`detach`].
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

/// Waits for the end of the process; the interpreter must not be held.
fn wait_for_end() -> ! {
    if DEPTH.replace(0) > 0 {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
    loop {
        std::thread::park();
    }
}

/// Puts back at its end, and where the call panics, what [`attach`] and [`detach`] change.
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
            // SAFETY: this thread holds the interpreter, and never goes back to what is below it.
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

/// Forgets, in a child process, the parent's other threads.
pub fn renew() {
    INSIDE.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
}

/// Called when Python shuts down.
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
