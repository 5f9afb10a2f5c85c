//! The `__getattr__` of `mt.ops` and its namespaces: loads the plugins, or explains why an op is missing.

use std::sync::atomic::{AtomicBool, Ordering};

use minitensor::registry;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use super::lookup::discover;
use super::namespace::module;
use crate::error::Result;

/// True if an installed plugin is not loaded yet.
static HAS_PENDING_PLUGINS: AtomicBool = AtomicBool::new(false);

/// Adds `__getattr__` to a module while it is needed: an op was unregistered for a reason, which is reported, or plugins
/// have to be loaded first. Removes it otherwise. With `__getattr__`, CPython is slower at all attributes of the module, so it is
/// temporary.
pub fn update_getattr(py: Python<'_>, namespace: &str) -> Result<()> {
    let dict = module(py, namespace)?.dict();
    let is_there = dict.contains("__getattr__")?;
    let wanted =
        registry::has_reasons(namespace) || (namespace.is_empty() && HAS_PENDING_PLUGINS.load(Ordering::Relaxed));
    if wanted && !is_there {
        let namespace = namespace.to_owned();
        let look = move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<Py<PyAny>> {
            let name = args.get_item(0)?.extract::<String>()?;
            Ok(missing(&module(args.py(), &namespace)?, &namespace, &name)?.unbind())
        };
        dict.set_item("__getattr__", PyCFunction::new_closure(py, None, None, look)?)?;
    } else if is_there && !wanted {
        dict.del_item("__getattr__")?;
    }
    Ok(())
}

/// Returns the value of a missing attribute of a module, or raises its error.
fn missing<'py>(module: &Bound<'py, PyModule>, namespace: &str, name: &str) -> Result<Bound<'py, PyAny>> {
    let py = module.py();
    let op = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}::{name}") };
    if namespace.is_empty() && !name.starts_with('_') && registry::reason(&op).is_none() {
        discover(py)?;
        if let Some(found) = module.dict().get_item(name)? {
            return Ok(found);
        }
    }
    let nothing = || Ok(format!("module '{}' has no attribute '{name}'", module.name()?));
    let error = PyAttributeError::new_err(registry::reason(&op).map_or_else(nothing, PyResult::Ok)?);
    error.value(py).setattr("name", name)?;
    error.value(py).setattr("obj", module)?;
    Err(error.into())
}

/// Sets whether there are plugins to load.
#[pyfunction]
fn _set_has_pending_plugins(py: Python<'_>, has_pending: bool) -> Result<()> {
    HAS_PENDING_PLUGINS.store(has_pending, Ordering::Relaxed);
    update_getattr(py, "")
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_set_has_pending_plugins, m)?)?;
    Ok(())
}
