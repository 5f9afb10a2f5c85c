//! Python numbers, and sequences of them, as Rust numbers.

use minitensor::Error;
use minitensor::tensor::try_vec;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::sequence::Items;
use crate::error::Result;
use crate::tensor::class::PyTensor;

/// An integer; booleans and floats are rejected.
pub fn int(value: &Bound<'_, PyAny>) -> Result<Option<i64>> {
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyFloat>() {
        return Ok(None);
    }
    let fitting = |value: &Bound<'_, PyAny>| {
        value.extract::<i64>().map(Some).map_err(|_| Error::value(format!("{value} does not fit into int64")).into())
    };
    if value.is_exact_instance_of::<PyInt>() {
        return fitting(value);
    }
    // SAFETY: the object is alive.
    if unsafe { ffi::PyIndex_Check(value.as_ptr()) } == 0 {
        return Ok(None);
    }
    match value.call_method0("__index__") {
        Ok(v) => fitting(&v),
        Err(_) => Ok(None),
    }
}

/// Integers: one, or a list, tuple or other sequence of them.
pub fn ints(value: &Bound<'_, PyAny>) -> Result<Option<Vec<i64>>> {
    if let Some(one) = int(value)? {
        return Ok(Some(vec![one]));
    }
    items(value)?.map_or(Ok(None), |items| read_all(items, int))
}

/// All numbers of a sequence; `None` if an element isn't a number.
fn read_all<'py, T>(
    items: Items<'py>,
    read: impl Fn(&Bound<'py, PyAny>) -> Result<Option<T>>,
) -> Result<Option<Vec<T>>> {
    let mut numbers = try_vec(items.len())?;
    for item in items {
        match read(&item?)? {
            Some(number) => numbers.push(number),
            None => return Ok(None),
        }
    }
    Ok(Some(numbers))
}

/// The elements of a list, tuple or other sequence; `None` for another object.
fn items<'py>(value: &Bound<'py, PyAny>) -> Result<Option<Items<'py>>> {
    let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    if !is_list
        && (value.is_instance_of::<PyString>() || !value.hasattr("__len__")? || !value.hasattr("__getitem__")?)
    {
        return Ok(None);
    }
    Items::of(value).map(Some)
}

/// Floats: a list, tuple or other sequence of them.
pub fn floats(value: &Bound<'_, PyAny>) -> Result<Option<Vec<f64>>> {
    items(value)?.map_or(Ok(None), |items| read_all(items, float))
}

/// A float. A tensor that requires a gradient is rejected, because the gradient would be lost silently.
pub fn float(value: &Bound<'_, PyAny>) -> Result<Option<f64>> {
    if let Ok(v) = value.cast::<PyFloat>() {
        return Ok(Some(v.value()));
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBool>() {
        return Ok(None);
    }
    if let Ok(t) = value.cast::<PyTensor>()
        && t.get().core()?.requires_grad()
    {
        return Err(PyTypeError::new_err(
            "an attribute is a plain number, so the gradient of the tensor that was passed for it would be lost; pass t.item(), \
             or use an op that takes a tensor instead",
        )
        .into());
    }
    Ok(value.extract::<f64>().ok())
}
