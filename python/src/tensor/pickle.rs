//! Pickling and copying.

use minitensor::{DType, Device, Error, Tensor};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::class::PyTensor;
use crate::error::Result;
use crate::saving::memory::bytes_of;

#[pymethods]
impl PyTensor {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, core) = (slf.py(), slf.get().core()?);
        core.expect_cpu()?;
        let state = (
            slf.get_type().into_any(),
            bytes_of(py, core)?,
            core.dtype().name(),
            PyTuple::new(py, core.shape().iter())?,
            core.requires_grad() && core.is_leaf(),
        );
        Ok((py.import("minitensor._minitensor")?.getattr("_rebuild")?, state.into_pyobject(py)?))
    }

    fn __copy__(&self) -> Result<PyTensor> {
        Ok(self.core()?.clone().into())
    }

    fn __deepcopy__(&self, memo: &Bound<'_, PyAny>) -> Result<PyTensor> {
        let _ = memo;
        let core = self.core()?;
        if !core.is_leaf() {
            return Err(PyRuntimeError::new_err(
                "only leaf tensors can be deep-copied, but this tensor is the result of a recorded op; detach() it first",
            )
            .into());
        }
        let copy = core.copied()?;
        copy.set_requires_grad(core.requires_grad())?;
        Ok(copy.into())
    }
}

/// Restores a pickled tensor.
#[pyfunction]
fn _rebuild<'py>(
    class: &Bound<'py, PyAny>,
    bytes: &[u8],
    dtype: &str,
    shape: Vec<usize>,
    requires_grad: bool,
) -> Result<Bound<'py, PyAny>> {
    let dtype = DType::parse(dtype).map_err(Error::from)?;
    let tensor = Tensor::empty(shape, dtype, Device::Cpu)?;
    if tensor.numel() * dtype.size() != bytes.len() || (dtype == DType::Bool && bytes.iter().any(|b| *b > 1)) {
        return Err(Error::value("invalid pickle of a tensor: the data does not match the shape and the dtype").into());
    }
    // SAFETY: the tensor was just allocated for this number of bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr(), bytes.len()) }
    tensor.set_requires_grad(requires_grad)?;
    let shell = class.call_method1("__new__", (class,))?;
    shell.setattr("_tensor", Bound::new(class.py(), PyTensor::from(tensor))?)?;
    Ok(shell)
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_rebuild, m)?)?;
    Ok(())
}
