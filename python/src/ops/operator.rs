//! The operators `+`, `<`, `@` and others: a table from Python's method to the op.

use minitensor::op::OpName;
use minitensor::{DType, Error, dispatch};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyBool, PyFloat, PyInt};

use super::tensor_arg::{TensorArg, TensorArgs, arguments};
use crate::error::Result;
use crate::runtime::call;
use crate::tensor::class::{PyTensor, op};

/// `&`, `|` and `^` of booleans are logical ops.
fn logical(
    name: &'static OpName,
    left: &Bound<'_, PyAny>,
    right: &Bound<'_, PyAny>,
) -> Result<Option<&'static OpName>> {
    let logical = match name.name() {
        "bitwise_and" | "bitwise_and_" => op!("logical_and"),
        "bitwise_or" | "bitwise_or_" => op!("logical_or"),
        "bitwise_xor" | "bitwise_xor_" => op!("logical_xor"),
        _ => return Ok(None),
    };
    for side in [left, right] {
        let is_boolean = match side.cast::<PyTensor>() {
            Ok(tensor) => tensor.get().core()?.dtype() == DType::Bool,
            Err(_) => side.is_instance_of::<PyBool>(),
        };
        if !is_boolean {
            return Ok(None);
        }
    }
    Ok(Some(logical))
}

/// Calls a binary op; returns `NotImplemented` if the other operand is neither a tensor nor a number.
pub fn binary<'py>(
    name: &'static OpName,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let py = left.py();
    let (Some(a), Some(b)) = (TensorArg::read(left.as_borrowed())?, TensorArg::read(right.as_borrowed())?) else {
        return Ok(py.NotImplemented().into_bound(py));
    };
    let op = logical(name, left, right)?.unwrap_or(name).get()?;
    let out = if let (Some(a), Some(b)) = (a.plain(), b.plain()) {
        call::call_one(py, op, &[a, b], &[])?
    } else {
        let mut tensors: TensorArgs<'_> = [a, b].into_iter().collect();
        call::call_one(py, op, &arguments(&mut tensors)?, &[])?
    };
    Ok(Bound::new(py, PyTensor::from(out))?.into_any())
}

fn unary(py: Python<'_>, name: &'static OpName, x: &PyTensor) -> Result<PyTensor> {
    Ok(call::call_one(py, name.get()?, &[x.core()?.into()], &[])?.into())
}

/// `x += y` modifies `x` itself. The op rejects a leaf that requires a gradient.
fn in_place(name: &'static OpName, left: &Bound<'_, PyTensor>, right: &Bound<'_, PyAny>) -> Result<()> {
    let Some(arg) = TensorArg::read(right.as_borrowed())? else {
        return Err(PyTypeError::new_err(format!(
            "an in-place operator of a tensor takes a tensor, an array or a number, got {}",
            right.get_type().name()?
        ))
        .into());
    };
    let logical_op = logical(name, left, right.as_any())?;
    if let Some(logical_op) = logical_op {
        let result = binary(logical_op, left, right)?;
        return in_place(op!("copy_"), left, &result);
    }
    let mut tensors: TensorArgs<'_> = [TensorArg::Tensor(left.get().core()?), arg].into_iter().collect();
    let (op, args) = (name.get()?, arguments(&mut tensors)?);
    call::call(left.py(), op, &args, || dispatch(op, &args, &[]))?;
    Ok(())
}

/// Two-argument `pow` is an op; the third argument is for integers only.
fn no_modulus(modulus: &Bound<'_, PyAny>) -> Result<()> {
    if modulus.is_none() {
        Ok(())
    } else {
        Err(PyTypeError::new_err("pow() of tensors does not support a modulus").into())
    }
}

/// Whether `x ** exponent` is the square of `x`, in the same dtype. It is faster than a power, and rounded correctly.
fn is_square(x: &PyTensor, exponent: &Bound<'_, PyAny>) -> Result<bool> {
    let dtype = x.core()?.dtype();
    Ok(match (exponent.cast_exact::<PyInt>(), exponent.cast_exact::<PyFloat>()) {
        (Ok(n), _) => dtype != DType::Bool && n.extract::<i64>().is_ok_and(|n| n == 2),
        (_, Ok(value)) => dtype.is_differentiable() && value.value() == 2.0,
        _ => false,
    })
}

/// An error if an integer exponent of integers is negative, as in NumPy and PyTorch: the power would be a fraction.
fn no_fraction(x: &PyTensor, exponent: &Bound<'_, PyAny>) -> Result<()> {
    let dtype = x.core()?.dtype();
    if dtype.is_differentiable() || exponent.is_instance_of::<PyFloat>() || exponent.is_instance_of::<PyTensor>() {
        return Ok(());
    }
    // Also an integer of NumPy.
    match exponent.call_method0("__index__") {
        Ok(n) if n.lt(0)? => Err(Error::value(format!(
            "a power of {dtype} with the exponent {n} is a fraction; convert the base first, as in x.astype(float) ** {n}"
        ))
        .into()),
        _ => Ok(()),
    }
}

fn comparison(compare: CompareOp) -> &'static OpName {
    match compare {
        CompareOp::Lt => op!("less"),
        CompareOp::Le => op!("less_equal"),
        CompareOp::Eq => op!("equal"),
        CompareOp::Ne => op!("not_equal"),
        CompareOp::Gt => op!("greater"),
        CompareOp::Ge => op!("greater_equal"),
    }
}

macro_rules! operators {
    (binary { $($forward:ident $reflected:ident $op:literal)* }
     in_place { $($assign:ident $assign_op:literal)* }
     unary { $($unary:ident $unary_op:literal)* }) => {
        #[pymethods]
        impl PyTensor {
            $(
                fn $forward<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
                    binary(op!($op), slf, other)
                }
                fn $reflected<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
                    binary(op!($op), other, slf)
                }
            )*
            $(
                fn $assign(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> Result<()> {
                    in_place(op!($assign_op), slf, other)
                }
            )*
            $(
                fn $unary(&self, py: Python<'_>) -> Result<PyTensor> {
                    unary(py, op!($unary_op), self)
                }
            )*
            fn __pow__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, modulus: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
                no_modulus(modulus)?;
                no_fraction(slf.get(), other)?;
                match is_square(slf.get(), other)? {
                    true => Ok(Bound::new(slf.py(), unary(slf.py(), op!("square"), slf.get())?)?.into_any()),
                    false => binary(op!("power"), slf, other),
                }
            }
            fn __rpow__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, modulus: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
                no_modulus(modulus)?;
                binary(op!("power"), other, slf)
            }
            fn __ipow__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, modulus: &Bound<'_, PyAny>) -> Result<()> {
                no_modulus(modulus)?;
                no_fraction(slf.get(), other)?;
                in_place(op!("power_"), slf, other)
            }
            fn __divmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
                Ok((binary(op!("floor_divide"), slf, other)?, binary(op!("remainder"), slf, other)?))
            }
            fn __invert__(&self, py: Python<'_>) -> Result<PyTensor> {
                let logical = self.core()?.dtype() == minitensor::DType::Bool;
                unary(py, if logical { op!("logical_not") } else { op!("bitwise_invert") }, self)
            }
            fn __richcmp__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, compare: CompareOp) -> Result<Bound<'py, PyAny>> {
                binary(comparison(compare), slf, other)
            }
            fn __hash__(slf: &Bound<'_, Self>) -> isize {
                // The low bits of an address are always equal.
                (slf.as_ptr() as isize).rotate_right(4)
            }
        }
    };
}

operators! {
    binary {
        __add__ __radd__ "add"
        __sub__ __rsub__ "subtract"
        __mul__ __rmul__ "multiply"
        __truediv__ __rtruediv__ "divide"
        __floordiv__ __rfloordiv__ "floor_divide"
        __mod__ __rmod__ "remainder"
        __matmul__ __rmatmul__ "matmul"
        __and__ __rand__ "bitwise_and"
        __or__ __ror__ "bitwise_or"
        __xor__ __rxor__ "bitwise_xor"
        __lshift__ __rlshift__ "bitwise_left_shift"
        __rshift__ __rrshift__ "bitwise_right_shift"
    }
    in_place {
        __iadd__ "add_"
        __isub__ "subtract_"
        __imul__ "multiply_"
        __itruediv__ "divide_"
        __ifloordiv__ "floor_divide_"
        __imod__ "remainder_"
        __iand__ "bitwise_and_"
        __ior__ "bitwise_or_"
        __ixor__ "bitwise_xor_"
        __ilshift__ "bitwise_left_shift_"
        __irshift__ "bitwise_right_shift_"
    }
    unary {
        __neg__ "negative"
        __pos__ "positive"
        __abs__ "abs"
    }
}
