//! [`attach`] and [`detach`]: acquire and release the GIL, also while the interpreter shuts down.
//!
//! While Python (before 3.14) shuts down, it ends each thread that requests the GIL. Therefore, after Python runs its `atexit`
//! functions, no other thread enters Python from Rust any more: it waits until the process ends. Python itself waits for threads that
//! run a Python function that was called from Rust, such as a hook. [`unwind`](super::unwind) stops the threads that request the GIL
//! elsewhere.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::Result;

/// The maximum time to wait for such functions at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

static IS_SHUTTING_DOWN: AtomicBool = AtomicBool::new(false);
/// The thread that shuts the interpreter down.
static SHUTDOWN_THREAD: OnceLock<ThreadId> = OnceLock::new();
/// The number of threads that are in Python, or about to be, after a call from Rust.
static THREADS_IN_PYTHON: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The nesting depth of calls from Rust to Python on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// True within [`detach`].
    static IS_DETACHED: Cell<bool> = const { Cell::new(false) };
}

fn enter_python() {
    if DEPTH.replace(DEPTH.get() + 1) == 0 {
        THREADS_IN_PYTHON.fetch_add(1, Ordering::SeqCst);
    }
}

fn leave_python() {
    DEPTH.set(DEPTH.get() - 1);
    if DEPTH.get() == 0 {
        THREADS_IN_PYTHON.fetch_sub(1, Ordering::SeqCst);
    }
}

/// True from the time when Python runs its `atexit` functions.
pub fn is_shutting_down() -> bool {
    IS_SHUTTING_DOWN.load(Ordering::SeqCst)
}

fn must_park() -> bool {
    is_shutting_down() && SHUTDOWN_THREAD.get() != Some(&std::thread::current().id())
}

/// Waits until the process ends. The thread must not hold the GIL.
pub fn park_forever() -> ! {
    if DEPTH.replace(0) > 0 {
        THREADS_IN_PYTHON.fetch_sub(1, Ordering::SeqCst);
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
            leave_python();
        }
    }
}

/// Calls `f`, which may run Python functions, while this thread holds the GIL.
pub fn attach<R>(f: impl FnOnce(Python<'_>) -> R) -> R {
    let was_detached = IS_DETACHED.replace(false);
    enter_python();
    let _restore = Restore { was_detached, entered: true };
    if was_detached && must_park() {
        park_forever();
    }
    Python::attach(|py| {
        let result = f(py);
        if must_park() {
            // SAFETY: this thread holds the GIL, and never returns to the frames below.
            unsafe { ffi::PyEval_SaveThread() };
            park_forever();
        }
        result
    })
}

/// Calls `f` while this thread does not hold the GIL.
pub fn detach<R: Send>(py: Python<'_>, f: impl FnOnce() -> R + Send) -> R {
    let mut restore = Restore { was_detached: IS_DETACHED.replace(true), entered: false };
    py.detach(|| {
        let result = f();
        enter_python();
        restore.entered = true;
        if must_park() {
            park_forever();
        }
        result
    })
}

/// Calls `f` while this thread does not hold the GIL, whether or not it holds it now.
pub fn release(f: &mut (dyn FnMut() + Send)) {
    // SAFETY: any thread may ask for its state. A thread without one does not hold the GIL.
    let has_state = || unsafe { !ffi::PyGILState_GetThisThreadState().is_null() };
    match !IS_DETACHED.get() && has_state() {
        true => Python::attach(|py| detach(py, f)),
        false => f(),
    }
}

/// Calls `f` on a thread that does not hold the GIL: one of another library, or one on which another library has released it.
pub fn outside<R>(f: impl FnOnce() -> R) -> R {
    let _restore = Restore { was_detached: IS_DETACHED.replace(true), entered: false };
    f()
}

/// Removes the parent's other threads from the state of a child process.
pub fn reset_in_child() {
    THREADS_IN_PYTHON.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
}

/// Runs when Python shuts down, as an `atexit` function.
#[pyfunction]
fn _shut_down(py: Python<'_>) {
    let _ = SHUTDOWN_THREAD.set(std::thread::current().id());
    IS_SHUTTING_DOWN.store(true, Ordering::SeqCst);
    let (own, end) = (usize::from(DEPTH.get() > 0), Instant::now() + SHUTDOWN_TIMEOUT);
    py.detach(|| {
        while THREADS_IN_PYTHON.load(Ordering::SeqCst) > own && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_shut_down, m)?)?;
    m.py().import("atexit")?.call_method1("register", (m.getattr("_shut_down")?,))?;
    Ok(())
}
