//! Functions of ops that take arrays of another library, and return arrays of it.

use pyo3::prelude::*;
use pyo3::types::PyModule;

use crate::error::Result;
use crate::ops::{function_object, lookup, module};

/// The function of an op that computes on the arrays of any library that [`Library`](super::library::Library) knows. Unlike
/// `mt.ops.<op>`, it never calls a bridge.
#[pyfunction]
fn _array_function<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
    let op = lookup::find(py, name)?;
    let (_, own) = op.name.rsplit_once("::").unwrap_or(("", &op.name));
    function_object::of_arrays(module::function(py, &op)?, &PyModule::import(py, "minitensor")?, own)
}

/// A function with the signature of an op that returns its arguments by name.
#[pyfunction]
fn _binding_function<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
    let op = lookup::find(py, name)?;
    let (_, own) = op.name.rsplit_once("::").unwrap_or(("", &op.name));
    function_object::of_binding(module::function(py, &op)?, &PyModule::import(py, "minitensor")?, own)
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_array_function, m)?)?;
    m.add_function(wrap_pyfunction!(_binding_function, m)?)?;
    Ok(())
}
