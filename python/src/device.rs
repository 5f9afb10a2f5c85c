//! Devices, memory statistics, threads and SIMD levels.

use minitensor::kernels::simd;
use minitensor::{Device, tensor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::attr::Whole;
use crate::error::Result;

/// The device with this name; the CPU if no name is given.
pub fn parse(device: Option<&str>) -> Result<Device> {
    Ok(device.map_or(Ok(Device::Cpu), Device::parse)?)
}

/// Sets the number of threads that ops run on.
#[pyfunction]
fn set_num_threads(n: Whole) -> Result<()> {
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
    m.add_function(wrap_pyfunction!(set_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(get_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(simd_level, m)?)?;
    m.add_function(wrap_pyfunction!(simd_levels, m)?)?;
    m.add_function(wrap_pyfunction!(memory_stats, m)?)?;
    m.add_function(wrap_pyfunction!(reset_peak_memory_stats, m)?)?;
    m.add_function(wrap_pyfunction!(empty_cache, m)?)?;
    Ok(())
}
