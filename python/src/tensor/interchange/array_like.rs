//! Tensors from Python data of any form: arrays, buffers, nested lists, numbers.

use minitensor::{DType, Error, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

pub use super::copy::Copy;
use super::numpy::{from_numpy, is_numpy};
use super::{buffer, dlpack, nested, number};
use crate::error::Result;
use crate::runtime::gil;
use crate::tensor::class::PyTensor;

/// A tensor with the data of `object`.
pub fn tensor(object: &Bound<'_, PyAny>, dtype: Option<DType>, copy: Copy) -> Result<Tensor> {
    let shared = match share(object, copy)? {
        Some(shared) => shared,
        None if copy == Copy::Never => {
            return Err(Error::value("copy=False, but Python lists and numbers must be copied").into());
        }
        None => return nested::tensor(object, dtype),
    };
    let dtype = dtype.unwrap_or(shared.dtype());
    match copy {
        Copy::Never if dtype != shared.dtype() => {
            Err(Error::value(format!("copy=False, but converting {} to {dtype} requires a copy", shared.dtype()))
                .into())
        }
        Copy::Always => Ok(gil::detach(object.py(), || cast(&shared, dtype))?),
        _ if dtype != shared.dtype() => Ok(cast(&shared, dtype)?),
        _ => Ok(shared),
    }
}

fn cast(tensor: &Tensor, dtype: DType) -> minitensor::Result<Tensor> {
    tensor.expect_values()?;
    if tensor.dtype().is_complex() && !dtype.is_complex() && dtype != DType::Bool {
        return Err(Error::type_(format!(
            "converting {} to {dtype} would discard the imaginary parts; use mt.ops.real first",
            tensor.dtype()
        )));
    }
    tensor.cast(dtype)
}

/// A tensor over the memory of another tensor, array or buffer.
fn share(object: &Bound<'_, PyAny>, copy: Copy) -> Result<Option<Tensor>> {
    if let Ok(t) = object.cast::<PyTensor>() {
        return Ok(Some(t.get().core()?.detach()));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyString>() {
        return Ok(None);
    }
    if is_numpy(object)? {
        return from_numpy(object, copy).map(Some);
    }
    if number::read(object)?.is_some() {
        return Ok(None);
    }
    if object.hasattr("__dlpack__")? {
        return dlpack::import(object, None).map(Some);
    }
    if buffer::is_buffer(object) {
        return buffer::import(object).map(Some);
    }
    if object.hasattr("__array__")? {
        return from_numpy(&object.py().import("numpy")?.call_method1("asarray", (object,))?, copy).map(Some);
    }
    Ok(None)
}
