//! [`TensorArg`]: a Python object as a tensor argument of an op.

use minitensor::kernels::Const;
use minitensor::op::Arg;
use minitensor::{DType, Error, OpDef, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use smallvec::SmallVec;

use super::array_args::is_number;
use crate::bridge::library::Library;
use crate::error::{Exception, Result};
use crate::tensor::class::PyTensor;
use crate::tensor::interchange::copy::Copy;
use crate::tensor::interchange::number::{self, Number};

/// A tensor argument. References point to tensors of Python objects that the caller of a function holds.
pub enum TensorArg<'a> {
    None,
    Tensor(&'a Tensor),
    Number(Const),
    Complex(f64, f64),
    Owned(Box<Tensor>),
}

/// The tensor arguments of one call.
pub type TensorArgs<'a> = SmallVec<[TensorArg<'a>; 4]>;

impl<'a> TensorArg<'a> {
    /// A tensor, a number, or an array of another library; other objects are not accepted as tensors.
    #[inline]
    pub fn read(object: Borrowed<'a, '_, PyAny>) -> Result<Option<TensorArg<'a>>> {
        if let Ok(t) = object.cast_exact::<PyTensor>() {
            return Ok(Some(TensorArg::Tensor(t.get().core()?)));
        }
        TensorArg::read_other(object)
    }

    fn read_other(object: Borrowed<'a, '_, PyAny>) -> Result<Option<TensorArg<'a>>> {
        if let Ok(t) = object.cast::<PyTensor>() {
            return Ok(Some(TensorArg::Tensor(t.get().core()?)));
        }
        match number::read(&object)? {
            Some(Number::Real(number)) => return Ok(Some(TensorArg::Number(number))),
            Some(Number::Complex(re, im)) => return Ok(Some(TensorArg::Complex(re, im))),
            None => {}
        }
        match Library::of(&object)? {
            Some(library) => Ok(Some(TensorArg::Owned(Box::new(library.checked_tensor(&object, Copy::IfNeeded)?)))),
            None => Ok(None),
        }
    }

    /// An argument of a call on arrays: as [`TensorArg::read`], but NumPy's scalars have their dtype, as in NumPy.
    pub fn read_array(object: Borrowed<'a, '_, PyAny>) -> Result<Option<TensorArg<'a>>> {
        if !is_number(&object)
            && let Some(library) = Library::of(&object)?
        {
            return Ok(Some(TensorArg::Owned(Box::new(library.tensor(&object, Copy::IfNeeded)?))));
        }
        TensorArg::read(object)
    }

    /// An argument that the op changes in place; `of_arrays` in a call on arrays only.
    pub fn read_changed(object: Borrowed<'a, '_, PyAny>, of_arrays: bool) -> Result<Option<TensorArg<'a>>> {
        if !object.is_instance_of::<PyTensor>()
            && let Some(library) = Library::of(&object)?
        {
            if !object.hasattr("__setitem__")? {
                return Err(Error::type_("NumPy's scalars cannot be changed in place; pass an array").into());
            }
            let read = if of_arrays { Library::tensor } else { Library::checked_tensor };
            return Ok(Some(TensorArg::Owned(Box::new(read(library, &object, Copy::Never)?))));
        }
        TensorArg::read(object)
    }

    /// The tensor over the memory of an array of another library.
    pub fn imported(&self) -> Option<Tensor> {
        if let TensorArg::Owned(t) = self { Some((**t).clone()) } else { None }
    }

    /// The argument without conversion, if it needs none.
    #[inline]
    pub fn plain(&self) -> Option<Arg<'a>> {
        match self {
            TensorArg::Tensor(t) => Some(Arg::Tensor(t)),
            TensorArg::Number(n) => Some(Arg::Number(*n)),
            _ => None,
        }
    }

    fn arg(&'a self) -> Arg<'a> {
        match self {
            TensorArg::None | TensorArg::Complex(..) => Arg::None,
            TensorArg::Tensor(t) => Arg::Tensor(t),
            TensorArg::Number(n) => Arg::Number(*n),
            TensorArg::Owned(t) => Arg::Tensor(t),
        }
    }
}

/// The tensors in a list or tuple, for a variadic input. They are cloned, because the list may change during the call.
pub fn read_list<'a>(
    op: &OpDef,
    name: &str,
    object: &Bound<'_, PyAny>,
    of_arrays: bool,
    into: &mut TensorArgs<'a>,
) -> Result<()> {
    let read = if of_arrays { TensorArg::read_array } else { TensorArg::read };
    let items: Vec<Bound<'_, PyAny>> = match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => return Err(not_a_tensor(op, name, "a list or tuple of tensors", object)),
    };
    for (i, item) in items.iter().enumerate() {
        let name = || format!("{name}[{i}]");
        into.push(match read(item.as_borrowed()).map_err(|e| of_input(op, &name(), e, item.py()))? {
            Some(TensorArg::Tensor(t)) => TensorArg::Owned(Box::new(t.clone())),
            Some(TensorArg::Owned(t)) => TensorArg::Owned(t),
            _ => return Err(not_a_tensor(op, &name(), "a tensor", item)),
        });
    }
    Ok(())
}

/// The error of an array that cannot be an input, with the names of the op and of the input.
#[cold]
pub fn of_input(op: &OpDef, name: &str, error: Exception, py: Python<'_>) -> Exception {
    error.about(py, format_args!("op '{}': input '{name}'", op.name))
}

#[cold]
pub fn not_a_tensor(op: &OpDef, name: &str, expected: &str, got: &Bound<'_, PyAny>) -> Exception {
    let class = got.get_type().fully_qualified_name().map_or_else(|_| "?".to_owned(), |n| n.to_string());
    Error::type_(format!(
        "op '{}': input '{name}' must be {expected}, got {class}; the signature is {}; if this holds the numbers of '{name}', convert it with mt.asarray()",
        op.name,
        op.signature()
    ))
    .into()
}

/// The arguments of a call. A complex number takes the precision of the tensors in the same call.
pub fn arguments<'b>(tensors: &'b mut TensorArgs<'_>) -> Result<SmallVec<[Arg<'b>; 4]>> {
    if tensors.iter().any(|o| matches!(o, TensorArg::Complex(..))) {
        let double = tensors.iter().any(|o| match o {
            TensorArg::Tensor(t) => matches!(t.dtype(), DType::F64 | DType::C128),
            TensorArg::Owned(t) => matches!(t.dtype(), DType::F64 | DType::C128),
            _ => false,
        });
        for tensor in tensors.iter_mut() {
            if let TensorArg::Complex(re, im) = *tensor {
                let number = Number::Complex(re, im).tensor(if double { DType::C128 } else { DType::C64 })?;
                *tensor = TensorArg::Owned(Box::new(number));
            }
        }
    }
    Ok(tensors.iter().map(TensorArg::arg).collect())
}
