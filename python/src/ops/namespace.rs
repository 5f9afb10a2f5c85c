//! The Python modules of namespaces.

use pyo3::prelude::*;

use crate::error::Result;

/// The module of a namespace: `minitensor.ops`, or `minitensor.ops.ns`, which is created at first use.
pub fn module<'py>(py: Python<'py>, namespace: &str) -> Result<Bound<'py, PyModule>> {
    if namespace.is_empty() {
        return Ok(py.import("minitensor.ops")?);
    }
    let (outer, last) = namespace.rsplit_once("::").unwrap_or(("", namespace));
    let outer = module(py, outer)?;
    let name = format!("{}.{last}", outer.name()?);
    let modules = py.import("sys")?.getattr("modules")?;
    if let Ok(found) = modules.get_item(&name) {
        return Ok(found.cast_into::<PyModule>().map_err(PyErr::from)?);
    }
    let made = PyModule::new(py, &name)?;
    made.setattr("__doc__", format!("The ops of the namespace '{namespace}'."))?;
    modules.set_item(&name, &made)?;
    // An op of the same name keeps its place; the namespace can still be imported.
    if !outer.dict().contains(last)? {
        outer.setattr(last, &made)?;
    }
    Ok(made)
}

/// The namespace of an op, and its name within the namespace.
pub fn split(name: &str) -> (&str, &str) {
    name.rsplit_once("::").unwrap_or(("", name))
}
