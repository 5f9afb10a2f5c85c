//! Where memory lies, how much is held, and what work is done on: threads and SIMD instructions.

use minitensor::kernels::simd;
use minitensor::{Device, tensor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::attr::Whole;
use crate::error::Result;

/// A device by name; the CPU if none is given.
pub fn parse(device: Option<&str>) -> Result<Device> {
    Ok(device.map_or(Ok(Device::Cpu), Device::parse)?)
}

/// Sets on how many threads ops run from now on.
#[pyfunction]
fn set_num_threads(n: Whole) -> Result<()> {
    let n = usize::try_from(n.get("set_num_threads", "n")?).ok().filter(|n| *n > 0);
    let n = n.ok_or_else(|| PyValueError::new_err("set_num_threads takes a number of at least 1"))?;
    minitensor::kernels::threads::set_num_threads(n);
    Ok(())
}

/// On how many threads ops run.
#[pyfunction]
fn get_num_threads() -> usize {
    minitensor::kernels::threads::num_threads()
}

/// The SIMD level that ops run at: the last of `simd_levels()`, or the one that the environment variable `MINITENSOR_SIMD`
/// named when minitensor was imported.
#[pyfunction]
fn simd_level() -> &'static str {
    simd::level().name()
}

/// The SIMD levels that this CPU has, the lowest first: of `baseline`, `avx2` and `avx512` on x86-64, and `neon` on aarch64.
#[pyfunction]
fn simd_levels(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, simd::levels().map(simd::Level::name).collect::<Vec<_>>())
}

/// How many bytes tensors hold at the moment, the most that they held at once, and how many are kept for the next ones:
/// `{"allocated": …, "peak": …, "cached": …}`.
#[pyfunction]
fn memory_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = PyDict::new(py);
    stats.set_item("allocated", tensor::allocated_bytes())?;
    stats.set_item("peak", tensor::peak_bytes())?;
    stats.set_item("cached", tensor::kept_bytes())?;
    Ok(stats)
}

/// Forgets the most bytes that tensors held at once: what they hold now is the peak from now on.
#[pyfunction]
fn reset_peak_memory_stats() {
    tensor::reset_peak_bytes();
}

/// Gives memory that is kept for reuse back to the system.
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
