//! Conversion of a tensor to another dtype or device, to Python numbers and to lists.

use minitensor::{DType, Device, Error, Tensor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::class::{PyTensor, call, op};
use super::interchange::nested;
use crate::device::{self, DeviceLike};
use crate::dtype;
use crate::error::Result;

/// The target of `x.to(…)`: a dtype or a device.
fn target(given: &Bound<'_, PyAny>) -> Result<(Option<DType>, Option<Device>)> {
    let not_a_dtype = match dtype::parse(given) {
        Ok(dtype) => return Ok((Some(dtype), None)),
        Err(error) => error,
    };
    if !device::is_like(given) {
        let (shown, names) = (given.repr()?, dtype::names());
        return Err(Error::type_(format!(
            "to() takes a dtype or a device, such as x.to('float64') or x.to('cpu'), got {shown}; the dtypes are {names}"
        ))
        .into());
    }
    match given.extract::<DeviceLike>() {
        Ok(device) => Ok((None, Some(device.into()))),
        // Only a device has an index; another unknown name may be a misspelled dtype.
        Err(error) if error.is_instance_of::<PyValueError>(given.py()) && !given.str()?.to_str()?.contains(':') => {
            let (device, dtype) = (error.value(given.py()).str()?, not_a_dtype.0.value(given.py()).str()?);
            Err(Error::value(format!("to() takes a dtype or a device: {dtype}; {device}")).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// A copy on another device, through which gradients flow.
fn moved(core: &Tensor, device: Device) -> Result<PyTensor> {
    core.expect_values()?;
    let (to, source) = (device.to_string(), core.device().to_string());
    call(op!("device::copy"), core, &[to.as_str().into(), source.as_str().into()])
}

impl PyTensor {
    /// Converts to a dtype and a device; returns the tensor itself if nothing changes.
    pub fn converted(slf: &Bound<'_, Self>, dtype: DType, device: Device) -> Result<Py<PyTensor>> {
        let core = slf.get().core()?;
        if device == Device::Meta && device != core.device() {
            return Ok(Py::new(slf.py(), PyTensor::from(Tensor::empty(core.shape().clone(), dtype, device)?))?);
        }
        let moved = (device != core.device()).then(|| moved(core, device)).transpose()?;
        let there = moved.as_ref().map_or(Ok(core), PyTensor::core)?;
        let cast = (dtype != core.dtype()).then(|| call(op!("astype"), there, &[dtype.into()])).transpose()?;
        Ok(match cast.or(moved) {
            Some(converted) => Py::new(slf.py(), converted)?,
            None => slf.clone().unbind(),
        })
    }
}

#[pymethods]
impl PyTensor {
    /// Converts the elements to another dtype; gradients flow through.
    #[pyo3(signature = (dtype, /, *, copy=true))]
    fn astype(slf: &Bound<'_, Self>, dtype: &Bound<'_, PyAny>, copy: bool) -> Result<Py<PyTensor>> {
        let (core, dtype) = (slf.get().core()?, dtype::parse(dtype)?);
        if dtype == core.dtype() && !copy {
            return Ok(slf.clone().unbind());
        }
        let converted = if dtype == core.dtype() {
            call(op!("clone"), core, &[])?
        } else {
            call(op!("astype"), core, &[dtype.into()])?
        };
        Ok(Py::new(slf.py(), converted)?)
    }

    /// Converts to another dtype or device; returns the tensor itself if nothing changes.
    #[pyo3(signature = (target=None, *, dtype=None, device=None))]
    fn to(
        slf: &Bound<'_, Self>,
        target: Option<&Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<DeviceLike>,
    ) -> Result<Py<PyTensor>> {
        let (mut to_dtype, mut to_device) = target.map_or(Ok((None, None)), self::target)?;
        to_dtype = dtype.map(dtype::parse).transpose()?.or(to_dtype);
        to_device = device.map(Device::from).or(to_device);
        let core = slf.get().core()?;
        PyTensor::converted(slf, to_dtype.unwrap_or(core.dtype()), to_device.unwrap_or(core.device()))
    }

    /// Returns the tensor itself if it is on the CPU, else a copy there; gradients flow through.
    fn cpu(slf: &Bound<'_, Self>) -> Result<Py<PyTensor>> {
        let core = slf.get().core()?;
        match core.device() {
            Device::Cpu => Ok(slf.clone().unbind()),
            _ => Ok(Py::new(slf.py(), moved(core, Device::Cpu)?)?),
        }
    }

    /// Returns the only element as a Python number.
    pub fn item<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let core = self.core()?.to_device(Device::Cpu)?;
        if core.numel() != 1 {
            return Err(Error::value(format!(
                "item() needs a tensor with one element, got shape {}; use tolist() for several",
                core.shape()
            ))
            .into());
        }
        nested::tolist(py, &core.reshape_view(&[])?)
    }

    /// Returns the elements as nested lists of Python numbers.
    fn tolist<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        nested::tolist(py, &self.core()?.to_device(Device::Cpu)?)
    }

    fn __bool__(&self) -> Result<bool> {
        let core = self.one("bool()")?;
        Ok(core.cast(DType::Bool)?.item::<bool>()?)
    }

    fn __float__(&self) -> Result<f64> {
        let core = self.one("float()")?;
        if core.dtype().is_complex() {
            return Err(Error::type_("float() of a complex tensor would lose its imaginary part; use complex()").into());
        }
        Ok(core.cast(DType::F64)?.item::<f64>()?)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let core = self.one("int()")?;
        if core.dtype().is_complex() {
            return Err(Error::type_("int() of a complex tensor would lose its imaginary part; use complex()").into());
        }
        let number = nested::tolist(py, &core.reshape_view(&[])?)?;
        Ok(number.call_method0("__int__")?)
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let core = self.one("complex()")?;
        nested::tolist(py, &core.cast(DType::C128)?.reshape_view(&[])?)
    }

    fn __index__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        use minitensor::dtype::Kind::{Signed, Unsigned};
        let core = self.core()?;
        if core.ndim() != 0 || !matches!(core.dtype().kind(), Signed | Unsigned) {
            return Err(Error::type_(format!(
                "only a 0-d integer tensor can be used as an index, got {} of shape {}",
                core.dtype(),
                core.shape()
            ))
            .into());
        }
        nested::tolist(py, core)
    }
}

impl PyTensor {
    fn one(&self, what: &str) -> Result<Tensor> {
        let core = self.core()?.to_device(Device::Cpu)?;
        if core.numel() != 1 {
            let hint = if what == "bool()" { "; use any() or all()" } else { "" };
            return Err(Error::value(format!(
                "{what} needs a tensor with one element, got shape {}{hint}",
                core.shape()
            ))
            .into());
        }
        Ok(core)
    }
}
