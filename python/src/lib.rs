//! The compiled part of the Python package: tensors, and one function for every op of the registry.
//!
//! | module | contents |
//! |---|---|
//! | [`tensor`] | the class `mt.Tensor`, creation, indexing, import and export of data |
//! | [`ops`] | the functions of `mt.ops`, methods and operators, ops that are written in Python |
//! | [`bridge`] | what bridges to other frameworks need |
//! | [`autograd`] | `backward`, `grad`, hooks |
//! | [`graph`] | the compiled part of `mt.jit` |
//! | [`guard`] | the Python objects that a graph depends on |
//! | [`saving`] | the compiled part of `mt.save` and `mt.load` |
//! | [`plugin`] | shared libraries with ops |
//! | [`profiler`], [`testing`], [`tuning`] | the compiled parts of `mt.profiler`, `mt.testing` and `mt.tuning` |
//! | [`dtype`], [`device`], [`integer`] | arguments of many functions |
//! | [`runtime`] | the GIL, signals, forks, logging, memory |
//! | [`error`] | Python exceptions from errors, and back |
//!
//! The Python part is in `python/minitensor`.

mod autograd;
mod bridge;
mod cuda;
mod device;
mod dtype;
mod error;
mod graph;
mod guard;
mod integer;
mod lazy;
mod ops;
mod plugin;
mod profiler;
mod runtime;
mod saving;
mod tensor;
mod testing;
mod tuning;

use minitensor_ops as _;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: runtime::allocator::Allocator = runtime::allocator::Allocator;

#[pymodule]
fn _minitensor(m: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(install(m)?)
}

fn install(m: &Bound<'_, PyModule>) -> error::Result<()> {
    minitensor::kernels::simd::choose().map_err(PyImportError::new_err)?;
    minitensor::registry::check()?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    runtime::install(m)?;
    dtype::install(m)?;
    cuda::install(m)?;
    device::install(m)?;
    tensor::install(m)?;
    autograd::install(m)?;
    ops::install(m)?;
    bridge::install(m)?;
    plugin::install(m)?;
    profiler::install(m)?;
    testing::install(m)?;
    graph::install(m)?;
    guard::install(m)?;
    lazy::install(m)?;
    tuning::install(m)?;
    saving::install(m)
}
