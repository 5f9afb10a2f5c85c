//! NumPy arrays: tensors over their memory, and arrays over the memory of tensors.

use minitensor::{DType, Error, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMemoryView, PyTuple};

use super::buffer;
use super::copy::Copy;
use super::sequence::MAX_DEPTH;
use crate::error::{Exception, Result};
use crate::tensor::class::{GRADIENT_WOULD_BE_LOST, PyTensor};

/// True for a NumPy array or scalar, or an object with NumPy's protocol that isn't one of our tensors.
pub fn is_numpy(object: &Bound<'_, PyAny>) -> Result<bool> {
    Ok(object.hasattr(pyo3::intern!(object.py(), "__array_interface__"))?)
}

/// A tensor over the memory of a NumPy array. It is copied only if its dtype or layout is not supported.
pub fn from_numpy(array: &Bound<'_, PyAny>, copy: Copy) -> Result<Tensor> {
    let numpy = array.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (array,))?;
    let dtype = array.getattr("dtype")?;
    let name = dtype.getattr("name")?.extract::<String>()?;
    let known = DType::parse(&name).map_err(|_| {
        Error::type_(format!(
            "the NumPy dtype {name} is not supported; convert the array first, for example with .astype('float32')"
        ))
    })?;
    if array.getattr("ndim")?.extract::<usize>()? == 0 {
        // Buffers without dimensions have no shape pointer.
        return Ok(from_numpy(&array.call_method1("reshape", (1,))?, copy)?.reshape_view(&[])?);
    }
    let is_native = dtype.getattr("isnative")?.is_truthy()?;
    let strides: Vec<isize> = array.getattr("strides")?.extract()?;
    let is_even = strides.iter().all(|s| s % known.size() as isize == 0);
    if !is_native || !is_even || !array.getattr("flags")?.getattr("aligned")?.is_truthy()? {
        if copy == Copy::Never {
            let message =
                "copy=False, but tensors do not support the byte order or the layout of the array; it must be copied";
            return Err(Error::value(message).into());
        }
        let native = dtype.call_method1("newbyteorder", ("=",))?;
        return from_numpy(&array.call_method1("astype", (native,))?, copy);
    }
    if known == DType::Bf16 {
        // NumPy's buffers don't support bfloat16.
        return Ok(buffer::import(&array.call_method1("view", ("uint16",))?)?.bits_as(DType::Bf16));
    }
    match own(&array, known, &strides)? {
        Some(tensor) => Ok(tensor),
        None => buffer::import(&array),
    }
}

/// If the array is a view of a tensor's memory: that tensor with the array's layout.
fn own(array: &Bound<'_, PyAny>, dtype: DType, strides: &[isize]) -> Result<Option<Tensor>> {
    let mut base = array.getattr("base")?;
    while base.hasattr("base")? && !base.is_instance_of::<PyMemoryView>() {
        base = base.getattr("base")?;
    }
    if !base.is_instance_of::<PyMemoryView>() {
        return Ok(None);
    }
    let owner = base.getattr("obj")?;
    let Ok(tensor) = owner.cast::<PyTensor>() else { return Ok(None) };
    let tensor = tensor.get().core()?;
    let is_writable = array.getattr("flags")?.getattr("writeable")?.is_truthy()?;
    let first: usize = array.getattr("__array_interface__")?.get_item("data")?.get_item(0)?.extract()?;
    let start = first.wrapping_sub(tensor.storage().data() as usize);
    let size = dtype.size();
    if tensor.dtype() != dtype || is_writable != tensor.storage().is_writable() || !start.is_multiple_of(size) {
        return Ok(None);
    }
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let strides = strides.iter().map(|s| s / size as isize).collect();
    // SAFETY: views of NumPy stay within the memory that they were made from, which is the tensor's.
    Ok(Some(unsafe { Tensor::from_parts(tensor.storage().clone(), shape.into(), strides, start / size, dtype) }))
}

trait BitsAs {
    fn bits_as(&self, dtype: DType) -> Tensor;
}

impl BitsAs for Tensor {
    /// The same bits as elements of another dtype with the same size.
    fn bits_as(&self, dtype: DType) -> Tensor {
        debug_assert_eq!(self.dtype().size(), dtype.size());
        let strides = self.strides().iter().copied().collect();
        // SAFETY: the window is that of a valid tensor, and every pattern of 16 bits is a bfloat16.
        unsafe { Tensor::from_parts(self.storage().clone(), self.shape().clone(), strides, self.offset(), dtype) }
    }
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
        let numpy = py.import("numpy")?;
        if core.dtype() == DType::Bf16 {
            let extended = py.import("ml_dtypes").and_then(|m| m.getattr("bfloat16"));
            let extended = extended.map_err(|_| {
                PyTypeError::new_err(
                    "NumPy does not support bfloat16; convert with astype('float32') first, or install ml_dtypes",
                )
            })?;
            let strides = core.strides().iter().copied().collect();
            // SAFETY: the window is the same, and a bfloat16 has 16 bits like a uint16.
            let bits = unsafe {
                Tensor::from_parts(core.storage().clone(), core.shape().clone(), strides, core.offset(), DType::U16)
            };
            let bits = numpy.call_method1("asarray", (Bound::new(py, PyTensor::from(bits))?,))?;
            return Ok(bits.call_method1("view", (extended,))?);
        }
        // SAFETY: a live object, with the interpreter attached; null means an exception is set.
        let memory = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyMemoryView_FromObject(slf.as_ptr()))? };
        Ok(numpy.call_method1("asarray", (memory,))?)
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
