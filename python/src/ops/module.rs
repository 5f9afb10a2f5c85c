//! `mt.ops`: a function for every op of the registry, updated with the registry.
//!
//! Threads may register and unregister ops at the same time. A thread changes a name only directly after reading the
//! registry, without running any Python code in between, so the last change is consistent with the registry.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use minitensor::fork::try_lock;
use minitensor::{Error, OpRef, registry};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::function::Function;
use super::function_object::{self, Call};
use super::getattr::update_getattr;
use super::lookup;
use super::namespace::{module, split};
use crate::error::Result;
use crate::runtime::{fork, gil};

/// The functions so far, by name.
static FUNCTIONS: Mutex<Option<HashMap<String, Arc<Function>>>> = Mutex::new(None);

/// Holds the lock of the functions for a fork, unless another thread holds it.
pub fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&FUNCTIONS)
}

fn with_functions<T>(f: impl FnOnce(&mut HashMap<String, Arc<Function>>) -> T) -> T {
    f(FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// The function of an op; always the same object.
pub fn function(py: Python<'_>, op: &OpRef) -> Result<Arc<Function>> {
    if let Some(found) = with_functions(|all| all.get(op.name.as_ref()).cloned().filter(|f| f.op.is(op))) {
        return Ok(found);
    }
    let made = Function::new(py, op.clone())?;
    if let Some(before) = with_functions(|all| all.insert(op.name.to_string(), made.clone())) {
        before.retire();
    }
    Ok(made)
}

/// Registers all of the ops, or none, with their functions. Returns the new ones; ops that are already registered stay.
/// `plugin` becomes the owner of all of them.
pub fn register_all(py: Python<'_>, ops: &[OpRef], plugin: Option<&str>) -> Result<Vec<OpRef>> {
    let new = gil::detach(py, || registry::register_all(ops, plugin))?;
    let added = new.iter().filter(|op| !op.is_gradient()).try_for_each(|op| add(py, op).map(drop));
    if added.is_err() {
        unregister_all(py, &new, None)?;
    }
    added?;
    notify(py)?;
    Ok(new)
}

/// Unregisters the ops that are registered, with their functions. Later lookups of their names report the reason.
pub fn unregister_all(py: Python<'_>, ops: &[OpRef], reason: Option<&str>) -> Result<()> {
    let gone = gil::detach(py, || registry::unregister_all(ops, reason));
    gone.iter().try_for_each(|op| remove(py, op, reason.is_some()))?;
    notify(py)
}

/// The functions to call after a change of the registry.
static LISTENERS: Mutex<Vec<Py<PyAny>>> = Mutex::new(Vec::new());

/// Holds the lock of the listeners for a fork, unless another thread holds it.
fn try_hold_listeners() -> Option<Box<dyn Any>> {
    try_lock(&LISTENERS)
}

/// Calls a function without arguments after every change of the registry.
#[pyfunction]
fn _on_change(listener: Py<PyAny>) {
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
}

/// Calls the listeners, such as bridges to other frameworks.
pub fn notify(py: Python<'_>) -> Result<()> {
    let listeners: Vec<Py<PyAny>> = {
        let all = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|listener| listener.clone_ref(py)).collect()
    };
    listeners.iter().try_for_each(|listener| Ok(listener.call0(py).map(drop)?))
}

/// Adds an op's function to the modules of all its names.
pub fn add<'py>(py: Python<'py>, op: &OpRef) -> Result<Bound<'py, PyAny>> {
    for name in op.names() {
        check_name(py, name)?;
    }
    let (namespace, own) = split(&op.name);
    let object = function_object::new(function(py, op)?, &module(py, namespace)?, own, Call::Op)?;
    let package = py.import("minitensor")?.dict();
    for name in op.names() {
        let (namespace, last) = split(name);
        let dict = module(py, namespace)?.dict();
        update_getattr(py, namespace)?;
        if registry::has(op) {
            let last = PyString::intern(py, last);
            dict.set_item(&last, &object)?;
            // The package also exports the op, unless it has another attribute of that name.
            if namespace.is_empty() && is_free(&package, last.to_str()?)? {
                package.set_item(&last, &object)?;
            }
        }
    }
    Ok(object)
}

/// An error if the name is taken by an attribute that isn't an op's function: `mt.ops.describe`.
fn check_name(py: Python<'_>, name: &str) -> Result<()> {
    let (namespace, last) = split(name);
    let module = module(py, namespace)?;
    match module.dict().get_item(last)? {
        Some(there) if function_object::op_of(&there).is_none() => Err(Error::value(format!(
            "op '{name}' cannot be registered: {}.{last} already exists and is not an op; choose another name",
            module.name()?
        ))
        .into()),
        _ => Ok(()),
    }
}

/// True if the name is free, or is that of the function of an unregistered op.
fn is_free(dict: &Bound<'_, PyDict>, name: &str) -> Result<bool> {
    let there = dict.get_item(name)?;
    Ok(there.is_none_or(|there| function_object::op_of(&there).is_some_and(|op| !registry::has(&op))))
}

/// Removes an op's function; `has_reason` if later lookups report one.
fn remove(py: Python<'_>, op: &OpRef, has_reason: bool) -> Result<()> {
    let function = with_functions(|all| match all.get(op.name.as_ref()) {
        Some(function) if function.op.is(op) && !registry::has(op) => all.remove(op.name.as_ref()),
        _ => None,
    });
    if let Some(function) = function {
        function.retire();
    }
    let package = py.import("minitensor")?.dict();
    for name in op.names() {
        let (namespace, last) = split(name);
        let dict = module(py, namespace)?.dict();
        for dict in [&dict, &package] {
            let object = dict.get_item(last)?;
            if object.is_some_and(|o| function_object::op_of(&o).is_some_and(|of| of.is(op))) && !registry::has(op) {
                dict.del_item(last)?;
            }
        }
        if has_reason {
            update_getattr(py, namespace)?;
        }
    }
    Ok(())
}

/// Creates the functions of all registered ops except gradients, which are only called by name.
#[pyfunction]
fn _fill_ops(py: Python<'_>) -> Result<usize> {
    let ops: Vec<OpRef> = registry::list();
    for op in &ops {
        add(py, op)?;
    }
    Ok(ops.len())
}

/// The names of all ops except gradients.
#[pyfunction]
fn _op_names() -> Vec<String> {
    registry::list().iter().map(|op| op.name.to_string()).collect()
}

/// The class of the result of an op with several outputs.
#[pyfunction]
fn _result_class<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
    let class = function(py, &lookup::find(py, name)?)?.result_class(py);
    Ok(class.ok_or_else(|| Error::value(format!("op '{name}' doesn't return a named tuple")))?)
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_result_class, m)?)?;
    m.add_function(wrap_pyfunction!(_fill_ops, m)?)?;
    m.add_function(wrap_pyfunction!(_op_names, m)?)?;
    m.add_function(wrap_pyfunction!(_on_change, m)?)?;
    fork::add_lock(try_hold);
    fork::add_lock(try_hold_listeners);
    Ok(())
}
