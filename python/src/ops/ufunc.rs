//! NumPy's ufuncs on tensors.
//!
//! NumPy computes `array + tensor` by `np.add`, so the ufuncs of binary operators are ops: `np.add(array, tensor)` and
//! `np.add(tensor, array)` return tensors. With keywords, and so also for `array += tensor`, and for all other ufuncs,
//! tensors are converted to arrays, and the results are arrays.

use minitensor::op::OpName;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::operator::binary;
use crate::error::Result;
use crate::tensor::class::{PyTensor, op};
use crate::tensor::interchange::numpy::{as_array, out_is_a_tensor};

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
            return Err(out_is_a_tensor(&name));
        }
        if method.to_str()? == "__call__"
            && keywords.is_none_or(|k| k.is_empty())
            && inputs.len() == 2
            && let Some(op) = operator(&name)
        {
            let result = binary(op, &inputs.get_item(0)?, &inputs.get_item(1)?)?;
            if !result.is(py.NotImplemented()) {
                return Ok(result);
            }
        }
        let arrays: Vec<Bound<'py, PyAny>> = inputs.iter().map(|input| as_array(&input)).collect::<Result<_>>()?;
        let keywords = keywords.map(|k| k.copy()).transpose()?;
        if let Some(keywords) = &keywords
            && let Some(mask) = keywords.get_item("where")?
        {
            keywords.set_item("where", as_array(&mask)?)?;
        }
        Ok(ufunc.getattr(method)?.call(PyTuple::new(py, arrays)?, keywords.as_ref())?)
    }
}
