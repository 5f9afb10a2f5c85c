//! The functions of `minitensor.cuda`.

use std::path::PathBuf;

use minitensor::backend::{self, cuda};
use minitensor::tensor::DeviceKind;
use minitensor::{Device, Error};
use pyo3::prelude::*;

use crate::device::DeviceLike;
use crate::error::Result;

/// A device `cuda`; the first one if none is given.
fn device(device: Option<DeviceLike>) -> Result<Device> {
    let device = match device {
        Some(device) => device.into(),
        None => Device::parse("cuda")?,
    };
    match device.kind().name() {
        "cuda" => Ok(device),
        _ => Err(Error::value(format!("expected a device 'cuda', got '{device}'")).into()),
    }
}

/// Returns the number of devices `cuda`.
#[pyfunction]
fn cuda_device_count() -> usize {
    Device::all().into_iter().filter(|device| Some(device.kind()) == DeviceKind::find("cuda")).count()
}

/// Returns the name of a device.
#[pyfunction]
#[pyo3(signature = (of=None))]
fn cuda_device_name(of: Option<DeviceLike>) -> Result<String> {
    Ok(cuda::name(device(of)?.index())?)
}

/// Returns the free bytes and all bytes of a device's memory.
#[pyfunction]
#[pyo3(signature = (of=None))]
fn cuda_memory(of: Option<DeviceLike>) -> Result<(usize, usize)> {
    Ok(cuda::memory(device(of)?.index())?)
}

/// Waits until a device has computed what this thread submitted.
#[pyfunction]
#[pyo3(signature = (of=None))]
fn cuda_synchronize(py: Python<'_>, of: Option<DeviceLike>) -> Result<()> {
    let device = device(of)?;
    Ok(py.detach(|| backend::synchronize(device))?)
}

/// Adds folders that may contain NVIDIA's packages.
#[pyfunction]
fn add_cuda_packages(folders: Vec<PathBuf>) {
    cuda::libraries::add_packages(folders);
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(cuda_device_count, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_device_name, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_memory, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_synchronize, m)?)?;
    m.add_function(wrap_pyfunction!(add_cuda_packages, m)?)?;
    Ok(())
}
