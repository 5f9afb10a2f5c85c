//! Ops of installed plugins, which are loaded when an op is asked for that isn't there.

use std::sync::atomic::{AtomicBool, Ordering};

use minitensor::{OpRef, registry};
use pyo3::prelude::*;

use crate::error::Result;
use crate::ops;

/// Whether a plugin is installed and not loaded yet.
static AWAITED: AtomicBool = AtomicBool::new(false);

/// Whether there may be more ops than are registered.
pub fn is_awaited() -> bool {
    AWAITED.load(Ordering::Relaxed)
}

/// Loads the plugins that are installed, unless that was done.
pub fn discover(py: Python<'_>) -> Result<()> {
    py.import("minitensor.plugins.discovery")?.call_method0("ensure")?;
    Ok(())
}

/// The op of that name. If nothing is known of it, plugins are discovered.
pub fn find(py: Python<'_>, name: &str) -> Result<OpRef> {
    if let Ok(op) = registry::get(name) {
        return Ok(op);
    }
    if registry::reason(name).is_none() {
        discover(py)?;
    }
    Ok(registry::get(name)?)
}

/// Says whether there are plugins to discover.
#[pyfunction]
fn _await_plugins(py: Python<'_>, yes: bool) -> Result<()> {
    AWAITED.store(yes, Ordering::Relaxed);
    ops::explain(py, "")
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_await_plugins, m)?)?;
    Ok(())
}
