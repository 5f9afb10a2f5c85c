//! `mt.ops`: a function for every op of the registry, kept as the registry is.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use minitensor::{OpRef, registry};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Result;
use crate::function::Function;

/// The functions made so far, by the names they stand under.
static FUNCTIONS: Mutex<Option<HashMap<String, &'static Function>>> = Mutex::new(None);

fn with_functions<T>(f: impl FnOnce(&mut HashMap<String, &'static Function>) -> T) -> T {
    f(FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// The function of an op; the same one whenever it is asked for.
pub fn function(py: Python<'_>, op: &OpRef) -> Result<&'static Function> {
    if let Some(found) = with_functions(|all| all.get(op.name.as_ref()).copied().filter(|f| f.is_of(op))) {
        return Ok(found);
    }
    let made = Function::new(py, op.clone())?;
    if let Some(before) = with_functions(|all| all.insert(op.name.to_string(), made)) {
        before.retire();
    }
    Ok(made)
}

/// The module for a namespace: `minitensor.ops`, or `minitensor.ops.ns`, which is made where it isn't there yet.
fn module<'py>(py: Python<'py>, namespace: &str) -> Result<Bound<'py, PyModule>> {
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

fn split(name: &str) -> (&str, &str) {
    name.rsplit_once("::").unwrap_or(("", name))
}

/// Puts an op's function where Python finds it, under all its names.
pub fn add<'py>(py: Python<'py>, op: &OpRef) -> Result<Bound<'py, PyAny>> {
    let function = function(py, op)?;
    let (namespace, own) = split(&op.name);
    let home = module(py, namespace)?;
    let object = function.object(&home, own)?;
    let package = py.import("minitensor")?.dict();
    for name in op.names() {
        let (namespace, last) = split(name);
        module(py, namespace)?.setattr(last, &object)?;
        // The package has the ops, too, where it has nothing else of that name.
        if namespace.is_empty() && !package.contains(last)? {
            package.set_item(last, &object)?;
        }
    }
    Ok(object)
}

/// Takes an op's function away again.
pub fn remove(py: Python<'_>, op: &OpRef) -> Result<()> {
    if let Some(function) = with_functions(|all| all.remove(op.name.as_ref())) {
        function.retire();
    }
    for name in op.names() {
        let (namespace, last) = split(name);
        let dict: Bound<'_, PyDict> = module(py, namespace)?.dict();
        let Some(object) = dict.get_item(last)? else { continue };
        dict.del_item(last)?;
        let package = py.import("minitensor")?.dict();
        if package.get_item(last)?.is_some_and(|o| o.is(&object)) {
            package.del_item(last)?;
        }
    }
    Ok(())
}

/// Makes the functions of all ops that are registered by now.
#[pyfunction]
fn _fill_ops(py: Python<'_>) -> Result<usize> {
    let ops: Vec<OpRef> = registry::list_all();
    for op in &ops {
        add(py, op)?;
    }
    Ok(ops.len())
}

/// The names of all ops, without those of gradients.
#[pyfunction]
fn _op_names() -> Vec<String> {
    registry::list().iter().map(|op| op.name.to_string()).collect()
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_fill_ops, m)?)?;
    m.add_function(wrap_pyfunction!(_op_names, m)?)?;
    m.add_function(wrap_pyfunction!(crate::tensor::_rebuild, m)?)?;
    Ok(())
}
