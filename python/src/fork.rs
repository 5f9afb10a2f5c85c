//! `os.fork()`: the child must not inherit locks that a thread of the parent holds.

use std::any::Any;
use std::cell::Cell;
use std::time::Duration;

use minitensor::fork::Held;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Result;
use crate::{exit, log, ops, release};

/// The locks that are held during a fork.
type Locks = (Held, [Box<dyn Any>; 2]);

thread_local! {
    static LOCKS: Cell<Option<Locks>> = const { Cell::new(None) };
}

fn try_all() -> Option<Locks> {
    Some((Held::try_all()?, [ops::try_hold()?, log::try_hold()?]))
}

/// Takes all locks. A thread that holds one of them may need the interpreter to release it.
#[pyfunction]
fn _before_fork(py: Python<'_>) {
    loop {
        if let Some(locks) = try_all() {
            return LOCKS.set(Some(locks));
        }
        py.detach(|| std::thread::sleep(Duration::from_micros(100)));
    }
}

#[pyfunction]
fn _after_fork_in_parent() {
    LOCKS.set(None);
}

#[pyfunction]
fn _after_fork_in_child() {
    LOCKS.set(None);
    release::become_main();
    exit::renew();
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
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
