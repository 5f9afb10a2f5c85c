//! The compiled part of `mt.jit` and `mt.vmap`: recordings, and graphs that run.

use std::cell::RefCell;

use minitensor::graph::{self, Batch, Randomness, Recording, Traced};
use minitensor::{Error, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::Result;
use crate::guard::Guard;
use crate::runtime::{call, gil};
use crate::tensor::class::PyTensor;

thread_local! {
    /// The recording of this thread.
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
    /// The recordings of examples. The last one interrupts the others.
    static BATCHES: RefCell<Vec<Batch>> = const { RefCell::new(Vec::new()) };
}

/// A recorded function of tensors.
///
/// `str(graph)` and `graph.show()` are its text. Lines that begin with a value, such as `%3: float32 (2, 4) = add(%0, %1)`, are
/// calls. A fused call is followed by its program.
#[pyclass(name = "Graph", module = "minitensor", frozen, weakref)]
struct PyGraph(Traced);

/// The tensors of a tuple.
pub fn tensors(tuple: &Bound<'_, PyTuple>) -> Result<Vec<Tensor>> {
    tuple.iter().map(|object| Ok(object.cast::<PyTensor>().map_err(PyErr::from)?.get().core()?.clone())).collect()
}

fn objects<'py>(py: Python<'py>, tensors: Vec<Tensor>) -> Result<Bound<'py, PyList>> {
    Ok(PyList::new(py, tensors.into_iter().map(PyTensor::from))?)
}

impl PyGraph {
    fn results<'py>(&self, py: Python<'py>, args: &[Tensor], numbers: &[f64]) -> Result<Bound<'py, PyList>> {
        let results = call::of_bytes(py, "jit", self.0.bytes(), || self.0.run(args, numbers))?;
        objects(py, results)
    }
}

#[pymethods]
impl PyGraph {
    /// Whether the graph is valid for these arguments.
    fn _matches(&self, args: &Bound<'_, PyTuple>) -> Result<bool> {
        Ok(self.0.matches(&tensors(args)?))
    }

    /// Whether the graph is no longer valid for any arguments.
    fn _is_stale(&self) -> bool {
        self.0.is_stale()
    }

    /// Runs the graph, if it is valid for these arguments, and everything that the guard knows is as before.
    fn _try<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        guard: &Guard,
    ) -> Result<Option<Bound<'py, PyList>>> {
        let args = tensors(args)?;
        if !self.0.matches(&args) || !guard.holds(py)? || self.0.is_stale() {
            return Ok(None);
        }
        self.results(py, &args, &[]).map(Some)
    }

    /// Runs the graph.
    fn _run<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>, numbers: Vec<f64>) -> Result<Bound<'py, PyList>> {
        self.results(py, &tensors(args)?, &numbers)
    }

    /// The number of calls.
    fn __len__(&self) -> usize {
        self.0.graph().calls.len()
    }

    fn __str__(&self) -> String {
        self.0.graph().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Graph of {} calls>", self.0.graph().calls.len())
    }

    /// The names of the called ops, in the order of the calls.
    #[getter]
    fn ops(&self) -> Vec<String> {
        self.0.graph().calls.iter().map(|call| call.op.name.to_string()).collect()
    }

    /// The text of the graph of its gradient; `None` if there is none.
    #[getter]
    fn gradient(&self) -> Option<String> {
        self.0.gradient()?.ok().map(ToString::to_string)
    }

    /// The graph as it was recorded, and after each pass that changed it: pairs of a name and a text.
    #[getter]
    fn stages(&self) -> Vec<(String, String)> {
        self.0.stages().to_vec()
    }

    /// Prints what each pass did.
    fn show(&self, py: Python<'_>) -> PyResult<()> {
        let text: Vec<String> = self.0.stages().iter().map(|(name, text)| format!("# {name}\n{text}\n")).collect();
        py.import("builtins")?.getattr("print")?.call1((text.join("\n"),)).map(|_| ())
    }

    /// The graph in the language of Graphviz.
    fn to_dot(&self) -> String {
        self.0.graph().to_dot()
    }
}

/// Starts to record the calls of this thread, as functions of these tensors.
#[pyfunction]
fn _record_start(args: &Bound<'_, PyTuple>) -> Result<()> {
    let recording = Recording::start(&tensors(args)?)?;
    RECORDING.with(|cell| *cell.borrow_mut() = Some(recording));
    Ok(())
}

/// Discards the recording of this thread.
#[pyfunction]
fn _record_cancel() {
    let recording = RECORDING.with(|cell| cell.borrow_mut().take());
    drop(recording);
}

/// Ends the recording of this thread: its graph, and the results for the caller.
#[pyfunction]
fn _record_finish<'py>(
    py: Python<'py>,
    args: &Bound<'py, PyTuple>,
    outputs: &Bound<'py, PyTuple>,
    watched: &Bound<'py, PyTuple>,
) -> Result<(PyGraph, Bound<'py, PyList>)> {
    let recording = RECORDING.with(|cell| cell.borrow_mut().take());
    let recording = recording.ok_or_else(|| Error::runtime("this thread does not record a graph"))?;
    let (traced, results) = Traced::new(recording, &tensors(args)?, &tensors(outputs)?, &tensors(watched)?)?;
    Ok((PyGraph(traced), objects(py, results)?))
}

/// Whether this thread records a graph.
#[pyfunction]
fn _is_recording() -> bool {
    graph::is_recording()
}

/// States that these attributes of the last recorded call are numbers that each run sets.
#[pyfunction]
fn _last_call_takes(names: Vec<String>) -> Result<()> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(graph::last_call_takes(&names)?)
}

/// A tensor that records like a leaf in place of this one, which has a history that is not part of the graph.
#[pyfunction]
fn _boundary(tensor: &PyTensor) -> Result<PyTensor> {
    Ok(tensor.core()?.detach().with_requires_grad()?.into())
}

/// Starts to record a function of one example. The first axis of the tensors has the examples. Returns the number of the recording
/// and the arguments of the function.
#[pyfunction]
fn _batch_start<'py>(py: Python<'py>, args: &Bound<'py, PyTuple>, size: usize) -> Result<(usize, Bound<'py, PyList>)> {
    let (batch, examples) = Batch::start(tensors(args)?, size)?;
    let number = BATCHES.with(|cell| {
        cell.borrow_mut().push(batch);
        cell.borrow().len()
    });
    Ok((number, objects(py, examples)?))
}

/// Discards the recording of an example, unless it has ended, and those that interrupt it.
#[pyfunction]
fn _batch_cancel(number: usize) {
    while let Some(batch) =
        BATCHES.with(|cell| if cell.borrow().len() < number { None } else { cell.borrow_mut().pop() })
    {
        drop(batch);
    }
}

/// Ends the recording of an example, and computes the results for all examples.
#[pyfunction]
fn _batch_finish<'py>(py: Python<'py>, outputs: &Bound<'py, PyTuple>, randomness: &str) -> Result<Bound<'py, PyList>> {
    let randomness = match randomness {
        "different" => Randomness::Different,
        "same" => Randomness::Same,
        _ => Randomness::Error,
    };
    let outputs = tensors(outputs)?;
    let batch = BATCHES.with(|cell| cell.borrow_mut().pop());
    let replay =
        batch.ok_or_else(|| Error::runtime("this thread does not record an example"))?.finish(&outputs, randomness)?;
    let results = call::of_bytes(py, "vmap", replay.bytes(), || replay.run())?;
    objects(py, results)
}

/// The position in the user's code, for messages.
fn locate() -> Option<String> {
    let place = gil::attach(|py| -> Result<Option<String>> {
        Ok(py.import("minitensor.tracing.jitted")?.getattr("_user_position")?.call0()?.extract()?)
    });
    place.ok().flatten()
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    graph::set_locate(locate);
    m.add_class::<PyGraph>()?;
    m.add_function(wrap_pyfunction!(_record_start, m)?)?;
    m.add_function(wrap_pyfunction!(_record_cancel, m)?)?;
    m.add_function(wrap_pyfunction!(_record_finish, m)?)?;
    m.add_function(wrap_pyfunction!(_is_recording, m)?)?;
    m.add_function(wrap_pyfunction!(_last_call_takes, m)?)?;
    m.add_function(wrap_pyfunction!(_boundary, m)?)?;
    m.add_function(wrap_pyfunction!(_batch_start, m)?)?;
    m.add_function(wrap_pyfunction!(_batch_cancel, m)?)?;
    m.add_function(wrap_pyfunction!(_batch_finish, m)?)?;
    Ok(())
}
