//! Devices, memory statistics, the number of threads, and SIMD levels.

use minitensor::kernels::simd;
use minitensor::{Device, tensor};
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::error::{Exception, Result};
use crate::integer::Integer;

/// Where the memory of a tensor is: `mt.Device("cpu")`.
///
/// Equal to its name: `x.device == "cpu"`. The devices are `cpu` and `meta`. A tensor on `meta` has a shape and a dtype, but
/// no values.
#[pyclass(name = "Device", module = "minitensor", frozen)]
pub struct PyDevice(pub Device);

#[pymethods]
impl PyDevice {
    #[new]
    fn new(name: DeviceLike) -> PyDevice {
        PyDevice(name.0)
    }

    /// The kind of the device, such as `"cpu"`.
    #[getter]
    fn r#type(&self) -> &'static str {
        self.0.kind().name()
    }

    /// The number of the device among those of its type.
    #[getter]
    fn index(&self) -> u32 {
        self.0.index()
    }

    fn __repr__(&self) -> String {
        format!("Device('{}')", self.0)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::new(py, &self.0.to_string()).hash()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        is_like(other) && other.extract::<DeviceLike>().is_ok_and(|device| device.0 == self.0)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String,)) {
        (PyDevice::type_object(py), (self.0.to_string(),))
    }
}

/// A device, or its name.
#[derive(Clone, Copy)]
pub struct DeviceLike(Device);

impl From<DeviceLike> for Device {
    fn from(device: DeviceLike) -> Device {
        device.0
    }
}

/// Whether an object may be a device or its name.
pub fn is_like(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyDevice>() || object.is_instance_of::<PyString>()
}

impl<'py> FromPyObject<'_, 'py> for DeviceLike {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(device) = object.cast::<PyDevice>() {
            return Ok(DeviceLike(device.get().0));
        }
        let Ok(name) = object.cast::<PyString>() else {
            let got = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "the device argument takes a Device or its name, such as 'cpu', got {got}"
            )));
        };
        Device::parse(name.to_str()?).map(DeviceLike).map_err(|error| Exception::from(error).into())
    }
}

/// The given device, or else the CPU.
pub fn or_cpu(device: Option<DeviceLike>) -> Device {
    device.map_or(Device::Cpu, Device::from)
}

/// Sets the number of threads that ops run on.
#[pyfunction]
fn set_num_threads(n: Integer) -> Result<()> {
    let n = usize::try_from(n.get("set_num_threads", "n")?).ok().filter(|n| *n > 0);
    let n = n.ok_or_else(|| PyValueError::new_err("set_num_threads takes a number of at least 1"))?;
    minitensor::kernels::threads::set_num_threads(n);
    Ok(())
}

/// Returns the number of threads that ops run on.
#[pyfunction]
fn get_num_threads() -> usize {
    minitensor::kernels::threads::num_threads()
}

/// Returns the SIMD level that ops run at: the last of `simd_levels()`, or the one that the environment variable
/// `MINITENSOR_SIMD` named when minitensor was imported.
#[pyfunction]
fn simd_level() -> &'static str {
    simd::level().name()
}

/// Returns the SIMD levels that this CPU supports, in ascending order: of `baseline`, `avx2` and `avx512` on x86-64,
/// and `neon` on aarch64.
#[pyfunction]
fn simd_levels(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, simd::levels().map(simd::Level::name).collect::<Vec<_>>())
}

/// Returns the number of bytes that tensors hold now, the maximum that they held at once, and the number kept for
/// reuse: `{"allocated": …, "peak": …, "cached": …}`.
#[pyfunction]
fn memory_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = PyDict::new(py);
    stats.set_item("allocated", tensor::allocated_bytes())?;
    stats.set_item("peak", tensor::peak_bytes())?;
    stats.set_item("cached", tensor::kept_bytes())?;
    Ok(stats)
}

/// Resets the peak of `memory_stats()` to the number of bytes that tensors hold now.
#[pyfunction]
fn reset_peak_memory_stats() {
    tensor::reset_peak_bytes();
}

/// Returns memory that is kept for reuse to the system.
#[pyfunction]
fn empty_cache() {
    tensor::empty_cache();
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_class::<PyDevice>()?;
    m.add_function(wrap_pyfunction!(set_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(get_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(simd_level, m)?)?;
    m.add_function(wrap_pyfunction!(simd_levels, m)?)?;
    m.add_function(wrap_pyfunction!(memory_stats, m)?)?;
    m.add_function(wrap_pyfunction!(reset_peak_memory_stats, m)?)?;
    m.add_function(wrap_pyfunction!(empty_cache, m)?)?;
    Ok(())
}
