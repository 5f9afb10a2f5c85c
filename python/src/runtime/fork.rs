//! `os.fork()`: the child must not inherit locks that a thread of the parent holds.

use std::any::Any;
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

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
}

/// Adds a lock that a fork must hold. Called while the module is imported.
pub fn add_lock(try_hold: TryHold) {
    LOCKS.lock().unwrap_or_else(PoisonError::into_inner).push(try_hold);
}

fn try_all() -> Option<AllHeld> {
    let locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    Some((Held::try_all()?, locks.iter().map(|try_hold| try_hold()).collect::<Option<_>>()?))
}

/// Takes all locks. A thread that holds one of them may need the GIL to release it.
#[pyfunction]
fn _before_fork(py: Python<'_>) {
    loop {
        if let Some(locks) = try_all() {
            return HELD.set(Some(locks));
        }
        py.detach(|| std::thread::sleep(Duration::from_micros(100)));
    }
}

#[pyfunction]
fn _after_fork_in_parent() {
    HELD.set(None);
}

#[pyfunction]
fn _after_fork_in_child() {
    HELD.set(None);
    signals::set_main_thread();
    gil::reset_in_child();
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    add_lock(log::try_hold);
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
