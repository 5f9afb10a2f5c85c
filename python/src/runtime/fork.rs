//! `os.fork()`: the child must not inherit locks that a thread of the parent holds.

use std::any::Any;
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use minitensor::fork::Held;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{gil, log, signals};
use crate::error::Result;

/// Acquires a lock, unless another thread holds it.
pub type TryHold = fn() -> Option<Box<dyn Any>>;

/// The locks of this crate, in the order in which a fork acquires them.
static LOCKS: Mutex<Vec<TryHold>> = Mutex::new(Vec::new());

/// The locks that are held during a fork: those of the core, and those of this crate.
type AllHeld = (Held, Vec<Box<dyn Any>>);

thread_local! {
    static HELD: Cell<Option<AllHeld>> = const { Cell::new(None) };
    /// Whether this thread is in `os.fork()`, so it has the GIL.
    static IS_HOOKED: Cell<bool> = const { Cell::new(false) };
}

/// Adds a lock that a fork must hold. Called while the module is imported.
pub fn add_lock(try_hold: TryHold) {
    LOCKS.lock().unwrap_or_else(PoisonError::into_inner).push(try_hold);
}

fn try_all() -> Option<AllHeld> {
    let locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    Some((Held::try_all()?, locks.iter().map(|try_hold| try_hold()).collect::<Option<_>>()?))
}

/// The handlers that the C library calls within `fork()`. Python's own hooks would be too early and too late: between them and `fork()`,
/// Python runs hooks of other modules, and may switch to a thread that waits for a lock with the GIL.
#[cfg(unix)]
mod handlers {
    use super::{HELD, IS_HOOKED, try_all};

    use std::cell::Cell;
    use std::ffi::c_int;
    use std::time::Duration;

    use pyo3::ffi;

    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<unsafe extern "C" fn()>,
            parent: Option<unsafe extern "C" fn()>,
            child: Option<unsafe extern "C" fn()>,
        ) -> c_int;
    }

    pub fn register() {
        // SAFETY: the handlers live as long as the process, because the library is never unmapped. If there is no memory for them, a
        // child may wait for a lock, as without them.
        unsafe { pthread_atfork(Some(prepare), Some(release), Some(release)) };
    }

    /// The most attempts if the thread may have the GIL, but Python's hooks did not run: code in C forks, which usually replaces the
    /// child by another program.
    const MOST: usize = 10_000;

    unsafe extern "C" fn prepare() {
        let is_hooked = IS_HOOKED.try_with(Cell::get).unwrap_or_default();
        for _ in 0..if is_hooked { usize::MAX } else { MOST } {
            if let Some(locks) = try_all() {
                let _ = HELD.try_with(|held| held.set(Some(locks)));
                return;
            }
            wait(is_hooked);
        }
    }

    unsafe extern "C" fn release() {
        let _ = HELD.try_with(|held| held.set(None));
    }

    /// Waits for a moment. A thread that holds a lock may need the GIL to release it.
    fn wait(has_gil: bool) {
        // SAFETY: Python runs its hooks, and forks, with the GIL.
        let state = has_gil.then(|| unsafe { ffi::PyEval_SaveThread() });
        std::thread::sleep(Duration::from_micros(100));
        // SAFETY: the state is that of this thread.
        state.into_iter().for_each(|state| unsafe { ffi::PyEval_RestoreThread(state) });
    }
}

/// The modules that finding an op by name may import.
const OF_LOOKUPS: [&str; 2] = ["importlib.metadata", "minitensor.plugins.discovery"];

/// A child could never import a module that another thread was importing. So these are imported before.
#[pyfunction]
fn _before_fork(py: Python<'_>) {
    // An import that fails fails again where its module is needed.
    OF_LOOKUPS.into_iter().for_each(|module| drop(py.import(module)));
    IS_HOOKED.set(true);
}

#[pyfunction]
fn _after_fork_in_parent() {
    IS_HOOKED.set(false);
}

#[pyfunction]
fn _after_fork_in_child() {
    IS_HOOKED.set(false);
    signals::set_main_thread();
    gil::reset_in_child();
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    add_lock(log::try_hold);
    #[cfg(unix)]
    handlers::register();
    m.add_function(wrap_pyfunction!(_before_fork, m)?)?;
    m.add_function(wrap_pyfunction!(_after_fork_in_parent, m)?)?;
    m.add_function(wrap_pyfunction!(_after_fork_in_child, m)?)?;
    let os = m.py().import("os")?;
    if os.hasattr("register_at_fork")? {
        let hooks = PyDict::new(m.py());
        hooks.set_item("before", m.getattr("_before_fork")?)?;
        hooks.set_item("after_in_parent", m.getattr("_after_fork_in_parent")?)?;
        hooks.set_item("after_in_child", m.getattr("_after_fork_in_child")?)?;
        os.call_method("register_at_fork", (), Some(&hooks))?;
    }
    Ok(())
}
