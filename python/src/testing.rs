//! Checks of ops and gradients, for `mt.testing`.

use minitensor::op::Arity;
use minitensor::testing::{GradCheck, Sample, gradcheck, opcheck, samples};
use minitensor::{Error, OpDef, OpRef, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::error::Result;
use crate::ops::{attr, lookup, module};
use crate::runtime::{call, gil};
use crate::tensor::class::PyTensor;

/// The op's name, the number of samples, the findings as pairs of check and message, and the reason if there are no
/// samples.
type Found = (String, usize, Vec<(String, String)>, Option<String>);

/// Runs all checks on an op.
#[pyfunction]
fn _opcheck(py: Python<'_>, name: &str, args: &Bound<'_, PyTuple>, keywords: &Bound<'_, PyDict>) -> Result<Found> {
    let op = lookup::find(py, name)?;
    let given: Vec<Sample> = given(py, &op, args, keywords)?.into_iter().collect();
    let report = gil::detach(py, || opcheck(&op, &given));
    let findings = report.findings.into_iter().map(|f| (f.check.to_owned(), f.message)).collect();
    Ok((report.op, report.samples, findings, report.refusal))
}

/// The sample that the arguments of a call form, if there are any.
fn given(
    py: Python<'_>,
    op: &OpRef,
    args: &Bound<'_, PyTuple>,
    keywords: &Bound<'_, PyDict>,
) -> Result<Option<Sample>> {
    if args.is_empty() && keywords.is_empty() {
        return Ok(None);
    }
    let mut objects: Vec<Bound<'_, PyAny>> = args.iter().collect();
    objects.extend(keywords.values());
    let names = PyTuple::new(py, keywords.keys())?;
    let pointers: Vec<_> = objects.iter().map(Bound::as_ptr).collect();
    // SAFETY: the pointers are the positional arguments, then one for each keyword; all are alive.
    let sample = unsafe { module::function(py, op)?.sample(py, pointers.as_ptr(), args.len(), names.as_ptr())? };
    Ok(Some(sample))
}

/// The arguments of calls that `opcheck` tries: pairs of inputs and attributes. A variadic input is a list. With arguments of
/// one call, that call only.
#[pyfunction]
#[pyo3(signature = (name, args=None, keywords=None))]
fn _samples<'py>(
    py: Python<'py>,
    name: &str,
    args: Option<Bound<'py, PyTuple>>,
    keywords: Option<Bound<'py, PyDict>>,
) -> Result<Vec<(Bound<'py, PyList>, Bound<'py, PyDict>)>> {
    let op = lookup::find(py, name)?;
    let (args, keywords) = (args.unwrap_or_else(|| PyTuple::empty(py)), keywords.unwrap_or_else(|| PyDict::new(py)));
    let made = match given(py, &op, &args, &keywords)? {
        Some(sample) => vec![sample],
        None => gil::detach(py, || samples(&op)),
    };
    made.into_iter().map(|sample| arguments(py, &op, sample)).collect()
}

/// The inputs and the attributes of a sample, in the order of the parameters.
fn arguments<'py>(py: Python<'py>, op: &OpDef, sample: Sample) -> Result<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
    let object = |t: Option<Tensor>| t.map(|t| Bound::new(py, PyTensor::from(t))).transpose();
    let mut tensors = sample.inputs.into_iter();
    let inputs = PyList::empty(py);
    for input in op.inputs.iter() {
        match input.arity {
            Arity::Variadic => inputs.append(tensors.by_ref().map(object).collect::<PyResult<Vec<_>>>()?)?,
            _ => inputs.append(object(tensors.next().flatten())?)?,
        }
    }
    let attrs = PyDict::new(py);
    for index in op.attr_order() {
        attrs.set_item(op.attrs[index].name.as_ref(), attr::object(py, &sample.attrs[index])?)?;
    }
    Ok((inputs, attrs))
}

/// Compares gradients of a Python function with finite differences; raises an error that lists the differences.
#[pyfunction]
fn _gradcheck(
    f: Bound<'_, PyAny>,
    inputs: Vec<Bound<'_, PyTensor>>,
    step: f64,
    atol: f64,
    rtol: f64,
    orders: usize,
) -> Result<()> {
    let (py, f) = (f.py(), f.unbind());
    let evaluate = |inputs: &[Tensor]| -> minitensor::Result<Vec<Tensor>> {
        let run = |py: Python<'_>| -> Result<Vec<Tensor>> {
            let arguments: Vec<_> =
                inputs.iter().map(|t| Bound::new(py, PyTensor::from(t.clone()))).collect::<PyResult<_>>()?;
            let given = f.bind(py).call1(PyTuple::new(py, arguments)?)?;
            let items: Vec<Bound<'_, PyAny>> = match (given.cast::<PyTuple>(), given.cast::<PyList>()) {
                (Ok(tuple), _) => tuple.iter().collect(),
                (_, Ok(list)) => list.iter().collect(),
                _ => vec![given],
            };
            let tensor = |item: &Bound<'_, PyAny>| {
                let tensor = item
                    .cast::<PyTensor>()
                    .map_err(|_| PyTypeError::new_err("gradcheck: the function must return Tensors"))?;
                Ok(tensor.get().core()?.clone())
            };
            items.iter().map(tensor).collect()
        };
        gil::attach(run).map_err(Error::from)
    };
    let inputs: Vec<Tensor> = inputs.iter().map(|t| Ok(t.get().core()?.clone())).collect::<Result<_>>()?;
    call::pass(py, "gradcheck", || gradcheck(&evaluate, &inputs, GradCheck { step, atol, rtol, orders }))
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_opcheck, m)?)?;
    m.add_function(wrap_pyfunction!(_samples, m)?)?;
    m.add_function(wrap_pyfunction!(_gradcheck, m)?)?;
    Ok(())
}
