//! `Tensor(data, …)`, and the empty shells that subclasses fill.

use minitensor::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::class::PyTensor;
use super::interchange::array_like::{self, Copy};
use crate::device::{self, DeviceLike};
use crate::dtype;
use crate::error::{Result, catch_panics};

/// An optional argument that distinguishes a missing value from `None`.
pub struct Given<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Given(Some(object.to_owned())))
    }
}

#[pymethods]
impl PyTensor {
    #[new]
    #[pyo3(signature = (data=Given(None), dtype=None, device=None, requires_grad=false), text_signature = "(data, dtype=None, device=None, requires_grad=False)")]
    fn new(
        data: Given<'_>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<DeviceLike>,
        requires_grad: bool,
    ) -> Result<PyTensor> {
        let Given(Some(data)) = data else { return Ok(PyTensor::shell()) };
        if !requires_grad && let Ok(t) = data.cast::<PyTensor>() {
            t.get().expect_no_grad(
                "Tensor() copies numbers, so the gradient of the tensor would be lost; clone() or detach() it",
            )?;
        }
        let (dtype, device) = (dtype.map(dtype::parse).transpose()?, device::or_cpu(device));
        let mut tensor =
            catch_panics("Tensor()", || array_like::tensor(&data, dtype, Copy::Always).map_err(Error::from))?;
        if device != tensor.device() {
            tensor = tensor.to_device(device)?;
        }
        if requires_grad {
            tensor.set_requires_grad(true)?;
        }
        Ok(tensor.into())
    }

    /// The tensor itself. Setting it fills an empty shell.
    #[getter]
    fn _tensor(slf: Bound<'_, Self>) -> Result<Bound<'_, Self>> {
        slf.get().core()?;
        Ok(slf)
    }

    #[setter(_tensor)]
    fn set_tensor(&self, core: &Bound<'_, PyTensor>) -> Result<()> {
        let filled = self.fill(core.get().core()?.clone());
        if filled {
            Ok(())
        } else {
            Err(PyRuntimeError::new_err(
                "this Tensor is already initialized; _tensor can only be set on an uninitialized Tensor",
            )
            .into())
        }
    }
}
