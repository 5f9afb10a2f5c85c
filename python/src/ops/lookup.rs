//! Finds ops by name. If no op has the name, the installed plugins are loaded first.

use minitensor::{OpRef, registry};
use pyo3::prelude::*;

use crate::error::Result;

/// Loads the installed plugins, unless they are already loaded.
pub fn discover(py: Python<'_>) -> Result<()> {
    py.import("minitensor.plugins.discovery")?.call_method0("discover_once")?;
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
