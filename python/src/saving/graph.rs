//! A recorded function as dictionaries and lists.

use std::cell::RefCell;

use minitensor::graph::{Call, Operand, PortableGraph, Recording, Source};
use minitensor::kernels::Const;
use minitensor::op::Role;
use minitensor::random::{Block, next_key};
use minitensor::{Device, Error, OpRef, registry};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::error::Result;
use crate::graph::tensors;
use crate::ops::attr;
use crate::tensor::class::PyTensor;

thread_local! {
    /// The recording of this thread.
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// Starts to record the calls of this thread, as functions of these tensors, for another process.
#[pyfunction]
fn _export_start(args: &Bound<'_, PyTuple>) -> Result<()> {
    let recording = Recording::start_portable(&tensors(args)?)?;
    RECORDING.with(|cell| *cell.borrow_mut() = Some(recording));
    Ok(())
}

/// Discards the recording of this thread.
#[pyfunction]
fn _export_cancel() {
    let recording = RECORDING.with(|cell| cell.borrow_mut().take());
    drop(recording);
}

/// Ends the recording of this thread. Returns a dictionary of `values`, `calls` and `outputs`.
///
/// A value is `("input", i)`, `("captured", tensor)`, `("constant", tensor)`, `("key", (n, is_of_integers))` or `("computed", None)`,
/// followed by its shape and its dtype. An output is the number of a value, and whether it lacks the history of the value.
#[pyfunction]
fn _export_finish<'py>(py: Python<'py>, outputs: &Bound<'py, PyTuple>) -> Result<Bound<'py, PyDict>> {
    let recording = RECORDING.with(|cell| cell.borrow_mut().take());
    let recording = recording.ok_or_else(|| Error::runtime("this thread does not record a graph"))?;
    let PortableGraph { graph, held, detached } = PortableGraph::new(recording, &tensors(outputs)?)?;
    let values = PyList::empty(py);
    for (value, t) in graph.values.iter().zip(held) {
        let tensor = || PyTensor::from(t.clone()).into_bound_py_any(py);
        let (kind, data) = match &value.source {
            Source::Input(at) => ("input", at.into_bound_py_any(py)?),
            Source::Captured(_) => ("captured", tensor()?),
            Source::Constant(_) => ("constant", tensor()?),
            Source::Key(n, block) => ("key", (n, *block == Block::Integer).into_bound_py_any(py)?),
            Source::Gradient(_) | Source::GradientOf(_) => {
                return Err(Error::runtime("the function reads the gradient of a tensor, so it cannot be saved").into());
            }
            Source::Computed => ("computed", py.None().into_bound(py)),
        };
        values.append((kind, data, PyTuple::new(py, value.shape.iter())?, value.dtype.name()))?;
    }
    let calls = PyList::empty(py);
    for call in &graph.calls {
        calls.append(written(py, call)?)?;
    }
    let outputs: Vec<(usize, bool)> = graph.outputs.iter().map(|id| id.at()).zip(detached).collect();
    let out = PyDict::new(py);
    out.set_item("values", values)?;
    out.set_item("calls", calls)?;
    out.set_item("outputs", outputs)?;
    Ok(out)
}

/// A call: `op`, whether the op `is_registered` and `is_built_in`, `args` in order, `attrs` by name, and for each result the number of its
/// value. An argument is `None`, `("number", value)`, or `("value", number, is_detached)`.
fn written<'py>(py: Python<'py>, call: &Call) -> Result<Bound<'py, PyDict>> {
    let args = PyList::empty(py);
    for (i, arg) in call.args.iter().enumerate() {
        match arg {
            Operand::None => args.append(py.None())?,
            Operand::Number(Const::Bool(v)) => args.append(("number", v))?,
            Operand::Number(Const::Int(v)) => args.append(("number", v))?,
            Operand::Number(Const::Float(v)) => args.append(("number", v))?,
            Operand::Value(id) => {
                args.append(("value", id.at(), call.cut.is_off || call.cut.detached.contains(&i)))?;
            }
        }
    }
    let attrs = PyDict::new(py);
    for (attr, value) in call.op.attrs.iter().zip(&call.attrs).filter(|(attr, _)| !attr.kind.is_tuned()) {
        attrs.set_item(attr.name.as_ref(), attr::object(py, value)?)?;
    }
    let results = PyList::empty(py);
    for (k, id) in call.outputs.iter().enumerate() {
        // Outputs of a list all have the role of the first.
        let role = call.op.outputs.get(k).map_or(Role::Returned, |output| output.role);
        if role == Role::Returned {
            results.append(id.map(|id| id.at()))?;
        }
    }
    let out = PyDict::new(py);
    out.set_item("op", call.op.name.as_ref())?;
    out.set_item("is_registered", registry::has(&call.op))?;
    out.set_item("is_built_in", matches!(call.op, OpRef::Static(_)))?;
    out.set_item("is_wide", call.is_wide)?;
    out.set_item("args", args)?;
    out.set_item("attrs", attrs)?;
    out.set_item("results", results)?;
    Ok(out)
}

/// The next key of the random number generator.
#[pyfunction]
fn _random_key(n: usize, is_of_integers: bool) -> Result<PyTensor> {
    Ok(next_key(n, if is_of_integers { Block::Integer } else { Block::Floats }, Device::Cpu)?.into())
}

/// Whether the op of this name is part of minitensor itself; `None` if there is none.
#[pyfunction]
fn _is_built_in(name: &str) -> Option<bool> {
    registry::get(name).ok().map(|op| matches!(op, OpRef::Static(_)))
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_export_start, m)?)?;
    m.add_function(wrap_pyfunction!(_export_cancel, m)?)?;
    m.add_function(wrap_pyfunction!(_export_finish, m)?)?;
    m.add_function(wrap_pyfunction!(_random_key, m)?)?;
    m.add_function(wrap_pyfunction!(_is_built_in, m)?)?;
    Ok(())
}
