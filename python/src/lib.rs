//! The compiled part of the Python package: tensors, and one function for every op of the registry.
//!
//! [`tensor`] has the class, [`function`] creates and calls the functions of `mt.ops`, [`custom`] builds ops that are
//! written in Python. [`data`], [`buffer`] and [`dlpack`] import and export data. The Python part is in
//! `python/minitensor`.

mod allocator;
mod attr;
mod autograd;
mod buffer;
mod built;
mod create;
mod custom;
mod data;
mod describe;
mod device;
mod discovery;
mod dlpack;
mod dtype;
mod error;
mod exit;
mod fork;
mod function;
mod index;
mod items;
mod iterator;
mod keeper;
mod library;
mod log;
mod method;
mod operand;
mod ops;
// PyO3's expansion of a table of methods calls unsafe functions; the file itself has none.
#[allow(unsafe_op_in_unsafe_fn)]
mod operator;
mod profiler;
mod release;
mod scalar;
mod tensor;
mod testing;
mod trampoline;
mod ufunc;

use minitensor_ops as _;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

#[pymodule]
fn _minitensor(m: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(install(m)?)
}

fn install(m: &Bound<'_, PyModule>) -> error::Result<()> {
    minitensor::kernels::simd::choose().map_err(PyImportError::new_err)?;
    minitensor::registry::check()?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    release::install(m.py())?;
    dtype::install(m)?;
    m.add_class::<tensor::PyTensor>()?;
    autograd::install(m)?;
    built::install(m)?;
    create::install(m)?;
    custom::install(m)?;
    describe::install(m)?;
    device::install(m)?;
    discovery::install(m)?;
    dlpack::install(m)?;
    exit::install(m)?;
    fork::install(m)?;
    library::install(m)?;
    ops::install(m)?;
    profiler::install(m)?;
    method::install(m)?;
    testing::install(m)?;
    Ok(())
}
