//! NumPy's ufuncs on tensors.
//!
//! Operators with an array as the left operand are operators of tensors: `array + tensor` is a tensor. In-place
//! operators keep their left operand: `array += tensor` modifies the array. All other ufuncs convert tensors to arrays,
//! and return arrays.

use minitensor::op::OpName;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::operator::binary;
use crate::error::Result;
use crate::tensor::class::{PyTensor, op};

/// The op of the operator that NumPy computes by a ufunc of this name.
fn operator(ufunc: &str) -> Option<&'static OpName> {
    Some(match ufunc {
        "add" => op!("add"),
        "subtract" => op!("subtract"),
        "multiply" => op!("multiply"),
        "divide" | "true_divide" => op!("divide"),
        "floor_divide" => op!("floor_divide"),
        "remainder" => op!("remainder"),
        "power" => op!("power"),
        "matmul" => op!("matmul"),
        "bitwise_and" => op!("bitwise_and"),
        "bitwise_or" => op!("bitwise_or"),
        "bitwise_xor" => op!("bitwise_xor"),
        "left_shift" => op!("bitwise_left_shift"),
        "right_shift" => op!("bitwise_right_shift"),
        "less" => op!("less"),
        "less_equal" => op!("less_equal"),
        "equal" => op!("equal"),
        "not_equal" => op!("not_equal"),
        "greater" => op!("greater"),
        "greater_equal" => op!("greater_equal"),
        _ => return None,
    })
}

/// Converts a tensor to an array; returns other objects unchanged.
fn array<'py>(object: Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    match object.cast::<PyTensor>() {
        Ok(tensor) => PyTensor::numpy(tensor),
        Err(_) => Ok(object),
    }
}

#[pymethods]
impl PyTensor {
    /// NumPy calls this method for a ufunc if one of its operands is a tensor.
    #[pyo3(signature = (ufunc, method, *inputs, **keywords))]
    fn __array_ufunc__<'py>(
        &self,
        ufunc: &Bound<'py, PyAny>,
        method: &Bound<'py, PyString>,
        inputs: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        let py = ufunc.py();
        let name = ufunc.getattr("__name__")?.extract::<String>()?;
        let out = keywords.map(|k| k.get_item("out")).transpose()?.flatten();
        if let Some(out) = &out
            && out.try_iter()?.any(|item| item.is_ok_and(|item| item.is_instance_of::<PyTensor>()))
        {
            return Err(PyTypeError::new_err(format!(
                "np.{name}: out must be an array, got a Tensor; give the array out.numpy(), which shares its memory"
            ))
            .into());
        }
        if method.to_str()? == "__call__"
            && keywords.is_none_or(|k| k.is_empty())
            && inputs.len() == 2
            && !inputs.get_item(0)?.is_instance_of::<PyTensor>()
            && let Some(op) = operator(&name)
        {
            return binary(op, &inputs.get_item(0)?, &inputs.get_item(1)?);
        }
        let arrays: Vec<Bound<'py, PyAny>> = inputs.iter().map(array).collect::<Result<_>>()?;
        let keywords = keywords.map(|k| k.copy()).transpose()?;
        if let Some(keywords) = &keywords
            && let Some(mask) = keywords.get_item("where")?
        {
            keywords.set_item("where", array(mask)?)?;
        }
        Ok(ufunc.getattr(method)?.call(PyTuple::new(py, arrays)?, keywords.as_ref())?)
    }
}
