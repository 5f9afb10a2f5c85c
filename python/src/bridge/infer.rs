//! The shapes and dtypes of the results of a call, from those of its inputs.

use minitensor::op::{Arg, infer, infer_dtypes};
use minitensor::{Attr, Device, OpDef, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::dtype;
use crate::error::{Result, catch_panics};
use crate::ops::{attr, lookup};

/// The shape and the dtype of a tensor; `None` for an absent one.
type Meta<'py> = Option<(Vec<usize>, Bound<'py, PyAny>)>;

/// The shapes and dtypes of the results of an op.
#[pyfunction]
fn _infer<'py>(
    py: Python<'py>,
    name: &str,
    inputs: Vec<Meta<'py>>,
    attrs: &Bound<'py, PyDict>,
) -> Result<Vec<(Bound<'py, PyTuple>, String)>> {
    let op = lookup::find(py, name)?;
    let attrs = attributes(&op, attrs)?;
    let mut metas = Vec::with_capacity(inputs.len());
    for input in inputs {
        metas.push(match input {
            Some((shape, dtype)) => Some(Tensor::empty(shape, dtype::parse(&dtype)?, Device::Meta)?),
            None => None,
        });
    }
    let args: Vec<Arg<'_>> = metas.iter().map(|t| t.as_ref().map_or(Arg::None, Arg::Tensor)).collect();
    let outputs = catch_panics(&op.name, || infer(&op, &args, &attrs))?;
    outputs.iter().map(|t| Ok((PyTuple::new(py, t.shape().iter())?, t.dtype().to_string()))).collect()
}

/// The dtypes of the results of an op, which do not depend on the shapes of its inputs.
#[pyfunction]
fn _infer_dtypes<'py>(
    py: Python<'py>,
    name: &str,
    dtypes: Vec<Option<Bound<'py, PyAny>>>,
    attrs: &Bound<'py, PyDict>,
) -> Result<Vec<String>> {
    let op = lookup::find(py, name)?;
    let attrs = attributes(&op, attrs)?;
    let dtypes = dtypes.iter().map(|d| d.as_ref().map(dtype::parse).transpose()).collect::<Result<Vec<_>>>()?;
    Ok(infer_dtypes(&op, &dtypes, &attrs)?.iter().map(|d| d.to_string()).collect())
}

/// The attributes of a call, complete, from a dictionary.
pub fn attributes(op: &OpDef, given: &Bound<'_, PyDict>) -> Result<Vec<Attr>> {
    let mut attrs = Vec::with_capacity(op.attrs.len());
    for index in 0..op.attrs.len() {
        attrs.push(match given.get_item(op.attrs[index].name.as_ref())? {
            Some(value) => attr::read(op, index, &value)?,
            None => op.default_attr(index)?,
        });
    }
    Ok(attrs)
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_infer, m)?)?;
    m.add_function(wrap_pyfunction!(_infer_dtypes, m)?)?;
    Ok(())
}
