//! Converts Python objects to attributes of ops.

use minitensor::tensor::try_vec;
use minitensor::{Attr, AttrKind, Error, OpDef};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::dtype;
use crate::error::Result;
use crate::items::Items;
use crate::tensor::PyTensor;

/// The value of the attribute at `index`, validated.
pub fn read(op: &OpDef, index: usize, value: &Bound<'_, PyAny>) -> Result<Attr> {
    let attr = &op.attrs[index];
    if value.is_none() {
        return Ok(op.check_attr(index, Attr::None)?);
    }
    match of_kind(attr.kind, value)? {
        Some(read) => Ok(op.check_attr(index, read)?),
        None => Err(wrong_type(op, index, value)),
    }
}

/// Converts to an attribute of this kind; `None` if the object has another type.
pub fn of_kind(kind: AttrKind, value: &Bound<'_, PyAny>) -> Result<Option<Attr>> {
    Ok(match kind {
        AttrKind::Bool => value.cast::<PyBool>().ok().map(|v| Attr::Bool(v.is_true())),
        AttrKind::Int | AttrKind::Size => int(value)?.map(Attr::Int),
        AttrKind::Float => float(value)?.map(Attr::Float),
        AttrKind::Str | AttrKind::Enum(_) => match value.cast::<PyString>() {
            Ok(word) => Some(Attr::from(word.to_str()?)),
            Err(_) => None,
        },
        AttrKind::Ints => ints(value)?.map(Attr::from),
        AttrKind::Floats => match items(value)? {
            Some(items) => read_all(items, float)?.map(Attr::from),
            None => None,
        },
        AttrKind::DType => Some(Attr::DType(dtype::parse(value)?)),
    })
}

#[cold]
fn wrong_type(op: &OpDef, index: usize, value: &Bound<'_, PyAny>) -> crate::error::Raised {
    let attr = &op.attrs[index];
    let optional = if attr.optional { " or None" } else { "" };
    let shown = value.repr().map_or_else(|_| "something".to_owned(), |r| r.to_string().chars().take(60).collect());
    let class = value.get_type().name().map_or_else(|_| "?".to_owned(), |n| n.to_string());
    let kind = attr.kind;
    Error::type_(format!("op '{}': attribute '{}' takes {kind}{optional}, got {shown} ({class})", op.name, attr.name))
        .into()
}

/// An integer argument of a function. If it doesn't fit 64 bits, it is rejected later, where the function is known.
pub enum Whole {
    Number(i64),
    /// Too large: its text in Python.
    Beyond(String),
}

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<i64>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                Ok(Whole::Beyond(object.str()?.to_string_lossy().into_owned()))
            }
            other => other.map(Whole::Number),
        }
    }
}

impl Whole {
    /// The number; `who` and `what` name the function and its argument in the error.
    pub fn get(&self, who: &str, what: &str) -> Result<i64> {
        match self {
            Whole::Number(number) => Ok(*number),
            Whole::Beyond(shown) => {
                Err(Error::value(format!("{who}: {what} is {shown}, which doesn't fit into int64")).into())
            }
        }
    }
}

/// An integer; booleans and floats are rejected.
fn int(value: &Bound<'_, PyAny>) -> Result<Option<i64>> {
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyFloat>() {
        return Ok(None);
    }
    let fitting = |value: &Bound<'_, PyAny>| {
        value.extract::<i64>().map(Some).map_err(|_| Error::value(format!("{value} doesn't fit into int64")).into())
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

fn items<'py>(value: &Bound<'py, PyAny>) -> Result<Option<Items<'py>>> {
    let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    if !is_list
        && (value.is_instance_of::<PyString>() || !value.hasattr("__len__")? || !value.hasattr("__getitem__")?)
    {
        return Ok(None);
    }
    Items::of(value).map(Some)
}

/// A float. A tensor that requires a gradient is rejected, because the gradient would be lost silently.
fn float(value: &Bound<'_, PyAny>) -> Result<Option<f64>> {
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
            "a tensor that requires a gradient was given for an attribute, a plain number through which no gradient flows; pass \
             t.item(), or use an op that takes a tensor there",
        )
        .into());
    }
    Ok(value.extract::<f64>().ok())
}
