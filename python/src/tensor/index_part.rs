//! [`Part`]: one part of an index, read from Python.

use minitensor::autograd::is_grad_enabled;
use minitensor::dtype::Kind;
use minitensor::error::counted;
use minitensor::{DType, Error, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple};

use super::class::PyTensor;
use super::interchange::array_like::{self, Copy};
use super::interchange::numpy::is_numpy;
use crate::error::Result;

/// One part of an index.
pub enum Part {
    /// An integer: removes the axis.
    Integer(i64),
    Slice(Option<i64>, Option<i64>, i64),
    /// `None`: a new axis.
    NewAxis,
    Ellipsis,
    /// Integers: selects these elements of the axis.
    Indices(Tensor),
    /// A mask over one or more axes.
    Mask(Tensor),
}

impl Part {
    /// Reads a part. If a gradient saves it, indices are copied: their memory may be that of an array which changes before the gradient is
    /// computed.
    fn read(object: &Bound<'_, PyAny>, is_saved: bool) -> Result<Part> {
        if object.is_none() {
            return Ok(Part::NewAxis);
        }
        if object.is_exact_instance_of::<PyInt>() {
            return Part::integer(object);
        }
        if object.is_instance_of::<PyEllipsis>() {
            return Ok(Part::Ellipsis);
        }
        if let Ok(slice) = object.cast::<PySlice>() {
            return Part::slice(slice);
        }
        let is_array = object.is_instance_of::<PyTensor>() || is_numpy(object)?;
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyBool>() || is_array {
            let index = array_like::tensor(object, None, Copy::IfNeeded)?;
            return match index.dtype().kind() {
                Kind::Bool => Ok(Part::Mask(index)),
                Kind::Signed | Kind::Unsigned if index.ndim() == 0 => {
                    Ok(Part::Integer(index.cast(DType::I64)?.item()?))
                }
                Kind::Signed if index.dtype() == DType::I64 && !is_saved => Ok(Part::Indices(index)),
                Kind::Signed | Kind::Unsigned => Ok(Part::Indices(index.cast(DType::I64)?)),
                _ if index.numel() == 0 && object.is_instance_of::<PyList>() => {
                    Ok(Part::Indices(index.cast(DType::I64)?))
                }
                _ => {
                    Err(Error::index(format!("an index must have an integer or boolean dtype, got {}", index.dtype()))
                        .into())
                }
            };
        }
        match object.call_method0("__index__") {
            Ok(at) => Part::integer(&at),
            Err(_) => Err(PyTypeError::new_err(format!(
                "an index must be an integer, a slice, None, '...', or an integer or boolean tensor, got {}",
                object.get_type().name()?
            ))
            .into()),
        }
    }

    fn integer(number: &Bound<'_, PyAny>) -> Result<Part> {
        let beyond = |_| Error::index(format!("index {number} is out of range for any axis"));
        Ok(Part::Integer(number.extract().map_err(beyond)?))
    }

    fn slice(slice: &Bound<'_, PySlice>) -> Result<Part> {
        let bound = |name: &str| -> Result<Option<i64>> {
            let value = slice.getattr(name)?;
            if value.is_none() {
                return Ok(None);
            }
            let value = value
                .call_method0("__index__")
                .map_err(|_| PyTypeError::new_err(format!("the {name} of a slice must be an integer")))?;
            // A bound that exceeds 64 bits is beyond every axis.
            Ok(Some(value.extract().unwrap_or(if value.gt(0)? { i64::MAX / 4 } else { i64::MIN / 4 })))
        };
        let step = bound("step")?.unwrap_or(1);
        if step == 0 {
            return Err(Error::value("the step of a slice must not be 0").into());
        }
        Ok(Part::Slice(bound("start")?, bound("stop")?, step))
    }

    /// The number of axes of the tensor that it uses.
    pub fn axes(&self) -> usize {
        match self {
            Part::NewAxis | Part::Ellipsis => 0,
            Part::Mask(mask) => mask.ndim(),
            _ => 1,
        }
    }

    pub fn is_advanced(&self) -> bool {
        matches!(self, Part::Indices(_) | Part::Mask(_))
    }
}

/// The parts of an index, with full slices for the axes that it doesn't name.
pub fn parts(tensor: &Tensor, index: &Bound<'_, PyAny>) -> Result<Vec<Part>> {
    let is_saved = is_grad_enabled() && tensor.requires_grad();
    let mut parts = match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|o| Part::read(&o, is_saved)).collect::<Result<Vec<_>>>()?,
        Err(_) => vec![Part::read(index, is_saved)?],
    };
    let taken: usize = parts.iter().map(Part::axes).sum();
    let Some(rest) = tensor.ndim().checked_sub(taken) else {
        return Err(Error::index(format!(
            "too many indices: got {taken} for a tensor of {} and shape {}",
            counted(tensor.ndim(), "dimension"),
            tensor.shape()
        ))
        .into());
    };
    let dots: Vec<usize> =
        parts.iter().enumerate().filter(|(_, p)| matches!(p, Part::Ellipsis)).map(|(i, _)| i).collect();
    if dots.len() > 1 {
        return Err(Error::index("an index can have only one '...'").into());
    }
    // If '...' expands to no axis it stays, because it still separates the parts on its two sides.
    if rest > 0 {
        let at = dots.first().copied().unwrap_or(parts.len());
        let whole = (0..rest).map(|_| Part::Slice(None, None, 1));
        parts.splice(at..(at + dots.len()), whole);
    }
    Ok(parts)
}
