//! Functions that list, call and unregister ops by name.

use minitensor::error::counted;
use minitensor::op::Arity;
use minitensor::{Error, OpRef, registry};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::lookup::{discover, find};
use super::module;
use crate::error::Result;
use crate::runtime::gil;

/// Returns the names of all registered ops, sorted, including those of installed plugins.
#[pyfunction]
fn list_custom_ops_py(py: Python<'_>) -> Result<Vec<String>> {
    discover(py)?;
    Ok(registry::list().iter().map(|op| op.name.to_string()).collect())
}

/// True if an op with this name is registered.
#[pyfunction]
fn is_custom_op_registered_py(py: Python<'_>, name: &str) -> Result<bool> {
    if !registry::contains(name) {
        discover(py)?;
    }
    Ok(registry::contains(name))
}

/// Calls an op by name with a list of tensors; attributes have their defaults.
#[pyfunction]
fn execute_custom_op_py<'py>(name: &str, inputs: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    execute_custom_op(name, inputs, None)
}

/// Calls an op by name with a list of tensors, and attributes as keywords.
///
/// >>> import minitensor as mt
/// >>> mt.execute_custom_op("clamp", [mt.Tensor([1.0, 3.0])], hi=2.0)
/// tensor([1., 2.])
#[pyfunction]
#[pyo3(signature = (name, inputs, **attrs))]
fn execute_custom_op<'py>(
    name: &str,
    inputs: &Bound<'py, PyAny>,
    attrs: Option<&Bound<'py, PyDict>>,
) -> Result<Bound<'py, PyAny>> {
    let py = inputs.py();
    let op = find(py, name)?;
    let items: Vec<Bound<'_, PyAny>> = match (inputs.cast::<PyList>(), inputs.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => {
            return Err(PyTypeError::new_err(format!(
                "op '{name}': inputs must be a list or tuple of tensors, got {}",
                inputs.get_type().name()?
            ))
            .into());
        }
    };
    check_count(&op, items.len())?;
    // A variadic input takes the tensors that the other inputs leave.
    let variadic = op.inputs.last().is_some_and(|i| i.arity == Arity::Variadic);
    let fixed = if variadic { op.inputs.len() - 1 } else { items.len() };
    let mut arguments: Vec<Bound<'py, PyAny>> = items[..fixed].to_vec();
    if variadic {
        arguments.push(PyList::new(py, &items[fixed..])?.into_any());
    }
    let (count, mut keywords) = (arguments.len(), Vec::new());
    for (name, value) in attrs.into_iter().flatten() {
        keywords.push(name);
        arguments.push(value);
    }
    let keywords = PyTuple::new(py, keywords)?;
    let pointers: Vec<_> = arguments.iter().map(Bound::as_ptr).collect();
    // SAFETY: the pointers are `count` positional arguments, then one for each keyword; all are alive.
    unsafe { module::function(py, &op)?.call(py, pointers.as_ptr(), count, keywords.as_ptr()) }
}

fn check_count(op: &OpRef, got: usize) -> Result<()> {
    let least = op.inputs.iter().filter(|i| i.arity == Arity::One).count();
    let most = if op.inputs.iter().any(|i| i.arity == Arity::Variadic) { usize::MAX } else { op.inputs.len() };
    if (least..=most).contains(&got) {
        return Ok(());
    }
    let names: Vec<&str> = op.inputs.iter().map(|i| i.name.as_ref()).collect();
    let (how, count) = (if least == most { "" } else { "at least " }, counted(least, "tensor"));
    let message = format!("op '{}' takes {how}{count} ({}), got {got}", op.name, names.join(", "));
    Err(Error::type_(message).into())
}

/// Unregisters an op. Tensors and graphs that use it stay valid; calling its function raises an error.
#[pyfunction]
fn unregister_custom_op_py(py: Python<'_>, name: &str) -> Result<()> {
    module::unregister_all(py, &[registry::get(name)?], None)
}

/// Registers the example ops of the documentation (swish, gelu, power, layer_norm). They are built in, so this has an
/// effect only after they were unregistered.
#[pyfunction]
fn register_example_custom_ops(py: Python<'_>) -> Result<()> {
    for op in gil::detach(py, || registry::restore(&["swish", "gelu", "power", "layer_norm"]))? {
        module::add(py, &op)?;
    }
    module::notify(py)
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(list_custom_ops_py, m)?)?;
    m.add_function(wrap_pyfunction!(is_custom_op_registered_py, m)?)?;
    m.add_function(wrap_pyfunction!(execute_custom_op_py, m)?)?;
    m.add_function(wrap_pyfunction!(execute_custom_op, m)?)?;
    m.add_function(wrap_pyfunction!(unregister_custom_op_py, m)?)?;
    m.add_function(wrap_pyfunction!(register_example_custom_ops, m)?)?;
    Ok(())
}
