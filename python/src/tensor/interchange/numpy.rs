//! NumPy arrays: tensors over their memory, and arrays over the memory of tensors.

use minitensor::{DType, Error, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::copy::Copy;
use super::ndarray::Api;
use super::sequence::MAX_DEPTH;
use crate::error::{Exception, Result};
use crate::tensor::class::{GRADIENT_WOULD_BE_LOST, PyTensor};

/// The reason why a masked array can't be a tensor.
const MASK_WOULD_BE_LOST: &str = "a masked array cannot be a tensor, because its mask would be lost; pass x.filled(value) with a value \
     for the masked elements, or x.data";

/// True for a NumPy array or scalar, or an object with NumPy's protocol that isn't one of our tensors.
pub fn is_numpy(object: &Bound<'_, PyAny>) -> Result<bool> {
    if Api::loaded(object.py()).is_some_and(|api| api.is_array(object)) {
        return Ok(true);
    }
    Ok(object.hasattr(pyo3::intern!(object.py(), "__array_interface__"))?)
}

/// A tensor over the memory of a NumPy array. It is copied only if its dtype or layout is not supported.
pub fn from_numpy(object: &Bound<'_, PyAny>, copy: Copy) -> Result<Tensor> {
    let api = Api::get(object.py())?;
    match api.tensor(object)? {
        Some(tensor) => Ok(tensor),
        None => from_unusual(api, object, copy),
    }
}

/// A tensor of an array with another class, dtype, byte order or layout.
#[cold]
fn from_unusual(api: &Api, object: &Bound<'_, PyAny>, copy: Copy) -> Result<Tensor> {
    let numpy = object.py().import("numpy")?;
    if object.is_instance(&numpy.getattr("ma")?.getattr("MaskedArray")?)? {
        return Err(PyTypeError::new_err(MASK_WOULD_BE_LOST).into());
    }
    let array = numpy.call_method1("asarray", (object,))?;
    let dtype = array.getattr("dtype")?;
    let name = dtype.getattr("name")?.extract::<String>()?;
    let known = DType::parse(&name).map_err(|_| {
        Error::type_(format!(
            "the NumPy dtype {name} is not supported; convert the array first, for example with .astype('float32')"
        ))
    })?;
    // NumPy's own dtypes don't include bfloat16.
    let of = |array: &Bound<'_, PyAny>| -> Result<Option<Tensor>> {
        match known {
            DType::Bf16 => {
                let bits = api.tensor(&array.call_method1("view", ("uint16",))?)?;
                Ok(bits.map(|bits| bits.bitcast(known)).transpose()?)
            }
            _ => api.tensor(array),
        }
    };
    if let Some(tensor) = of(&array)? {
        return Ok(tensor);
    }
    if copy == Copy::Never {
        let message =
            "copy=False, but tensors do not support the byte order or the layout of the array; it must be copied";
        return Err(Error::value(message).into());
    }
    let native = dtype.call_method1("newbyteorder", ("=",))?;
    let copied = array.call_method1("astype", (native,))?;
    Ok(of(&copied)?.ok_or_else(|| Error::type_(format!("a copy of an array of {name} cannot be a tensor")))?)
}

/// Converts a tensor to an array; returns other objects unchanged.
pub fn as_array<'py>(object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    match object.cast::<PyTensor>() {
        Ok(tensor) => PyTensor::numpy(tensor),
        Err(_) => Ok(object.clone()),
    }
}

/// The error for a tensor as `out` of a NumPy function.
pub fn out_is_a_tensor(function: &str) -> Exception {
    PyTypeError::new_err(format!(
        "np.{function}: out must be an array, got a Tensor; pass out.numpy(), which shares its memory"
    ))
    .into()
}

/// Converts the tensors in an argument of a NumPy function, also those in lists and tuples.
fn with_arrays<'py>(object: &Bound<'py, PyAny>, depth: usize) -> Result<Bound<'py, PyAny>> {
    let convert = |items: Vec<Bound<'py, PyAny>>| {
        items.iter().map(|item| with_arrays(item, depth + 1)).collect::<Result<Vec<_>>>()
    };
    // A deeper list contains itself.
    if depth > MAX_DEPTH {
        return Ok(object.clone());
    }
    match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
        (Ok(list), _) => Ok(PyList::new(object.py(), convert(list.iter().collect())?)?.into_any()),
        (_, Ok(tuple)) => Ok(PyTuple::new(object.py(), convert(tuple.iter().collect())?)?.into_any()),
        _ => as_array(object),
    }
}

/// NumPy functions that read an attribute of their argument. They accept tensors that cannot be converted to arrays.
const ATTRIBUTES: &[&str] = &["ndim", "shape", "size"];

#[pymethods]
impl PyTensor {
    /// NumPy calls this method for its functions, such as `np.sum`, if an argument is a tensor. The tensors are converted
    /// to arrays, so the function returns arrays.
    fn __array_function__<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        keywords: &Bound<'py, PyDict>,
    ) -> Result<Bound<'py, PyAny>> {
        let _ = types;
        let name = function.getattr("__name__")?.extract::<String>()?;
        if ATTRIBUTES.contains(&name.as_str()) {
            return Ok(function.getattr("__wrapped__")?.call(args, Some(keywords))?);
        }
        let converted = PyDict::new(function.py());
        for (keyword, value) in keywords {
            if keyword.eq("out")? && value.is_instance_of::<PyTensor>() {
                return Err(out_is_a_tensor(&name));
            }
            converted.set_item(keyword, with_arrays(&value, 0)?)?;
        }
        let args = with_arrays(args.as_any(), 0)?.cast_into::<PyTuple>().map_err(PyErr::from)?;
        Ok(function.call(args, Some(&converted))?)
    }

    /// Returns a NumPy array with the same memory. A tensor that requires a gradient raises an error: use
    /// `t.detach().numpy()`.
    pub fn numpy<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let (py, core) = (slf.py(), slf.get().core()?);
        core.expect_cpu()?;
        if core.requires_grad() {
            return Err(PyRuntimeError::new_err(GRADIENT_WOULD_BE_LOST).into());
        }
        let api = Api::get(py)?;
        if core.dtype() == DType::Bf16 {
            let extended = py.import("ml_dtypes").and_then(|m| m.getattr("bfloat16"));
            let extended = extended.map_err(|_| {
                PyTypeError::new_err(
                    "NumPy does not support bfloat16; convert with astype('float32') first, or install ml_dtypes",
                )
            })?;
            let bits = api.array(Bound::new(py, PyTensor::from(core.bitcast(DType::U16)?))?)?;
            return Ok(bits.call_method1("view", (extended,))?);
        }
        api.array(slf.clone())
    }

    /// `np.asarray(t)` calls this method.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        let array = PyTensor::numpy(slf)?;
        let keywords = PyDict::new(slf.py());
        match (dtype, copy) {
            (None, Some(true)) => return Ok(array.call_method0("copy")?),
            (None, _) => return Ok(array),
            (Some(_), Some(false)) => {
                if !array.getattr("dtype")?.eq(dtype)? {
                    return Err(Error::value(format!(
                        "copy=False, but converting {} to another dtype requires a copy",
                        slf.get().core()?.dtype()
                    ))
                    .into());
                }
                return Ok(array);
            }
            (Some(_), copy) => keywords.set_item("copy", copy.unwrap_or(false))?,
        }
        Ok(array.call_method("astype", (dtype,), Some(&keywords))?)
    }

    /// Makes NumPy's arrays delegate `array + tensor` to the tensor.
    #[classattr]
    #[allow(non_upper_case_globals)]
    const __array_priority__: f64 = 1000.0;
}
