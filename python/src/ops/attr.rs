//! Attributes of ops from Python objects, and back.

use minitensor::{Attr, AttrKind, Error, OpDef};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::dtype;
use crate::error::{Exception, Result};
use crate::tensor::interchange::numbers::{float, floats, int, ints};

/// The value of the attribute at `index`, validated.
pub fn read(op: &OpDef, index: usize, value: &Bound<'_, PyAny>) -> Result<Attr> {
    let attr = &op.attrs[index];
    if value.is_none() {
        return Ok(op.check_attr(index, Attr::None)?);
    }
    let named = |error: Exception| error.about(value.py(), format_args!("op '{}': attribute '{}'", op.name, attr.name));
    match of_kind(attr.kind, value).map_err(named)? {
        Some(read) => Ok(op.check_attr(index, read)?),
        None => Err(wrong_type(op, index, value)),
    }
}

/// Converts to an attribute of this kind; `None` if the object has another type.
pub fn of_kind(kind: AttrKind, value: &Bound<'_, PyAny>) -> Result<Option<Attr>> {
    Ok(match kind {
        AttrKind::Bool => value.cast::<PyBool>().ok().map(|v| Attr::Bool(v.is_true())),
        AttrKind::Int | AttrKind::Size | AttrKind::Tuned(_) => int(value)?.map(Attr::Int),
        AttrKind::Float => float(value)?.map(Attr::Float),
        AttrKind::Str | AttrKind::Enum(_) => match value.cast::<PyString>() {
            Ok(word) => Some(Attr::from(word.to_str()?)),
            Err(_) => member(value)?,
        },
        AttrKind::Ints => ints(value)?.map(Attr::from),
        AttrKind::Floats => floats(value)?.map(Attr::from),
        AttrKind::DType => Some(Attr::DType(dtype::parse(value)?)),
    })
}

/// The word of a member of an enum in Python; `None` for another object.
#[cold]
fn member(value: &Bound<'_, PyAny>) -> Result<Option<Attr>> {
    let class = value.py().import("enum")?.getattr("Enum")?;
    if !value.is_instance(&class)? {
        return Ok(None);
    }
    let word = value.getattr("value")?;
    Ok(word.cast::<PyString>().ok().map(|word| word.to_str().map(Attr::from)).transpose()?)
}

#[cold]
fn wrong_type(op: &OpDef, index: usize, value: &Bound<'_, PyAny>) -> Exception {
    let attr = &op.attrs[index];
    let optional = if attr.optional { " or None" } else { "" };
    let shown = value.repr().map_or_else(|_| "something".to_owned(), |r| r.to_string().chars().take(60).collect());
    let class = value.get_type().name().map_or_else(|_| "?".to_owned(), |n| n.to_string());
    let kind = attr.kind;
    Error::type_(format!("op '{}': attribute '{}' takes {kind}{optional}, got {shown} ({class})", op.name, attr.name))
        .into()
}

/// The value of an attribute as a Python object.
pub fn object<'py>(py: Python<'py>, attr: &Attr) -> Result<Bound<'py, PyAny>> {
    Ok(match attr {
        Attr::None => py.None().into_bound(py),
        Attr::Bool(v) => v.into_bound_py_any(py)?,
        Attr::Int(v) => v.into_bound_py_any(py)?,
        Attr::Float(v) => v.into_bound_py_any(py)?,
        Attr::Str(v) => v.as_ref().into_bound_py_any(py)?,
        Attr::Ints(v) => v.to_vec().into_bound_py_any(py)?,
        Attr::Floats(v) => v.to_vec().into_bound_py_any(py)?,
        Attr::DType(d) => dtype::object(py, *d)?.into_any(),
    })
}
