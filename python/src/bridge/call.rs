//! Functions of ops that take arrays of another library, and return arrays of it.

use pyo3::prelude::*;
use pyo3::types::PyModule;

use crate::error::Result;
use crate::ops::function_object::{self, Call};
use crate::ops::{lookup, module};

/// The function of an op that computes on the arrays of any library that [`Library`](super::library::Library) knows. Unlike
/// `mt.ops.<op>`, it never calls a bridge.
#[pyfunction]
fn _array_function<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
    make(py, name, Call::Arrays)
}

/// The function of an op that computes on tensors of PyTorch without PyTorch's dispatcher. It returns None if autograd must record
/// the call, and NotImplemented if the dispatcher must see it.
#[pyfunction]
fn _undispatched_function<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
    make(py, name, Call::Undispatched)
}

/// A function with the signature of an op that returns its arguments by name.
#[pyfunction]
fn _binding_function<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
    make(py, name, Call::Binding)
}

/// A function object of an op.
fn make<'py>(py: Python<'py>, name: &str, call: Call) -> Result<Bound<'py, PyAny>> {
    let op = lookup::find(py, name)?;
    let (_, own) = op.name.rsplit_once("::").unwrap_or(("", &op.name));
    function_object::new(module::function(py, &op)?, &PyModule::import(py, "minitensor")?, own, call)
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_array_function, m)?)?;
    m.add_function(wrap_pyfunction!(_undispatched_function, m)?)?;
    m.add_function(wrap_pyfunction!(_binding_function, m)?)?;
    Ok(())
}
