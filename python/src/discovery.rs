//! Ops of installed plugins. Plugins are loaded when an op is requested that isn't registered.

use std::sync::atomic::{AtomicBool, Ordering};

use minitensor::{OpRef, registry};
use pyo3::prelude::*;

use crate::error::Result;
use crate::ops;

/// True if an installed plugin is not loaded yet.
static AWAITED: AtomicBool = AtomicBool::new(false);

/// True if there may be more ops than are registered.
pub fn is_awaited() -> bool {
    AWAITED.load(Ordering::Relaxed)
}

/// Loads the installed plugins, unless they are already loaded.
pub fn discover(py: Python<'_>) -> Result<()> {
    py.import("minitensor.plugins.discovery")?.call_method0("ensure")?;
    Ok(())
}

/// The op with this name. If it isn't registered, installed plugins are loaded first.
pub fn find(py: Python<'_>, name: &str) -> Result<OpRef> {
    if let Ok(op) = registry::get(name) {
        return Ok(op);
    }
    if registry::reason(name).is_none() {
        discover(py)?;
    }
    Ok(registry::get(name)?)
}

/// Sets whether there are plugins to load.
#[pyfunction]
fn _await_plugins(py: Python<'_>, yes: bool) -> Result<()> {
    AWAITED.store(yes, Ordering::Relaxed);
    ops::explain(py, "")
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_await_plugins, m)?)?;
    Ok(())
}
