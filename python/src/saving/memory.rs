//! The elements of tensors as bytes, and the state of the random numbers.

use minitensor::{DType, Device, Error, Tensor, random};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::dtype;
use crate::error::Result;
use crate::tensor::class::PyTensor;

/// The elements of a tensor in row-major order, as little-endian bytes.
#[pyfunction]
fn _tensor_bytes<'py>(py: Python<'py>, tensor: &PyTensor) -> Result<Bound<'py, PyBytes>> {
    bytes_of(py, &tensor.core()?.to_device(Device::Cpu)?)
}

/// The same for a tensor on the CPU.
pub fn bytes_of<'py>(py: Python<'py>, tensor: &Tensor) -> Result<Bound<'py, PyBytes>> {
    let whole = tensor.contiguous()?;
    let bytes = whole.numel() * whole.dtype().size();
    // SAFETY: the elements of a contiguous tensor occupy this number of bytes.
    let bytes = if bytes == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(whole.data_ptr(), bytes) } };
    if whole.dtype() != DType::Bool {
        return Ok(PyBytes::new(py, bytes));
    }
    // Another library may have written bytes other than 0 and 1, which are true.
    let truths: Vec<u8> = bytes.iter().map(|b| u8::from(*b != 0)).collect();
    Ok(PyBytes::new(py, &truths))
}

/// A tensor with these elements, in row-major order, as little-endian bytes.
#[pyfunction]
fn _tensor_from_bytes(bytes: &[u8], dtype: &Bound<'_, PyAny>, shape: &Bound<'_, PyTuple>) -> Result<PyTensor> {
    let dtype = dtype::parse(dtype)?;
    let shape: Vec<usize> = shape.extract()?;
    let size = shape.iter().try_fold(dtype.size(), |size, n| size.checked_mul(*n));
    if size != Some(bytes.len()) {
        return Err(
            Error::value(format!("the data has {} bytes, which is not the size of the shape", bytes.len())).into()
        );
    }
    if dtype == DType::Bool && bytes.iter().any(|b| *b > 1) {
        return Err(Error::value("the data of a bool tensor must consist of the bytes 0 and 1").into());
    }
    let tensor = Tensor::empty(shape, dtype, Device::Cpu)?;
    if !bytes.is_empty() {
        // SAFETY: the tensor was just allocated for this number of bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr(), bytes.len()) }
    }
    Ok(tensor.into())
}

/// Returns the state of the random number generator: the seed, and the number of the next block.
///
/// >>> import minitensor as mt
/// >>> state = mt.get_rng_state()
/// >>> x = mt.rand(2)
/// >>> mt.set_rng_state(state)
/// >>> mt.rand(2).tolist() == x.tolist()
/// True
#[pyfunction]
fn get_rng_state() -> (u64, u64) {
    random::state()
}

/// Sets the state of the random number generator to one that `get_rng_state` returned.
#[pyfunction]
fn set_rng_state(state: (u64, u64)) {
    random::set_state(state);
}

/// The number of keys of random numbers that this thread has taken.
#[pyfunction]
fn _keys_taken() -> u64 {
    random::keys_taken()
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_tensor_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(_tensor_from_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(get_rng_state, m)?)?;
    m.add_function(wrap_pyfunction!(set_rng_state, m)?)?;
    m.add_function(wrap_pyfunction!(_keys_taken, m)?)?;
    Ok(())
}
