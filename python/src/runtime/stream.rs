//! Streams of CUDA devices. A device runs the calls of a thread on the thread's current stream.

use minitensor::backend::{cuda, wait};
use minitensor::tensor::DeviceKind;
use minitensor::{Device, Result};
use pyo3::prelude::*;

/// The CUDA device with this index, if this process can use it.
pub fn device(index: u32) -> Option<Device> {
    let known = DeviceKind::find("cuda").map(|kind| Device::new(kind, index)).filter(|device| device.exists());
    // The search by name starts the driver, if nothing did before.
    known.or_else(|| Device::parse(&format!("cuda:{index}")).ok())
}

/// Whether a device has streams that other libraries know.
#[inline]
pub fn has_streams(device: Device) -> bool {
    device != Device::Cpu && device.kind().name() == "cuda"
}

/// A stream of a device. The number 0 is CUDA's legacy default stream.
#[derive(Clone, Copy, PartialEq)]
pub struct Stream {
    device: Device,
    number: usize,
}

impl Stream {
    /// The stream of a CUDA device.
    pub fn new(device: Device, number: usize) -> Stream {
        // The driver has two names for the legacy default stream.
        Stream { device, number: if number == 1 { 0 } else { number } }
    }

    /// The current stream of this thread; `None` for a device without streams.
    #[inline]
    pub fn current(device: Device) -> Option<Stream> {
        has_streams(device).then(|| Stream::new(device, cuda::stream(device.index())))
    }

    /// The device.
    pub fn device(self) -> Device {
        self.device
    }

    /// The number, which is the address of the driver's stream.
    pub fn number(self) -> usize {
        self.number
    }

    /// Makes it the current stream of this thread until the result is dropped.
    pub fn enter(self) -> Entered {
        Entered { index: self.device.index(), previous: cuda::set_stream(self.device.index(), self.number) }
    }

    /// Waits for all that was submitted to the stream.
    pub fn wait(self) -> Result<()> {
        let _entered = self.enter();
        wait(self.device)
    }
}

/// Restores the previous stream of this thread when it is dropped.
#[must_use]
pub struct Entered {
    index: u32,
    previous: usize,
}

impl Drop for Entered {
    fn drop(&mut self) {
        cuda::set_stream(self.index, self.previous);
    }
}

/// Whether this process can compute on a CUDA device.
#[pyfunction]
fn _has_cuda() -> bool {
    device(0).is_some()
}

/// The current stream of this thread on a CUDA device. 0 is the legacy default stream.
#[pyfunction]
fn _cuda_stream(index: u32) -> usize {
    cuda::stream(index)
}

/// Sets the current stream of this thread on a CUDA device, and returns the previous one. The stream must exist until another
/// one is set.
#[pyfunction]
fn _set_cuda_stream(index: u32, stream: usize) -> usize {
    cuda::set_stream(index, stream)
}

pub fn install(m: &Bound<'_, PyModule>) -> crate::error::Result<()> {
    m.add_function(wrap_pyfunction!(_has_cuda, m)?)?;
    m.add_function(wrap_pyfunction!(_cuda_stream, m)?)?;
    m.add_function(wrap_pyfunction!(_set_cuda_stream, m)?)?;
    Ok(())
}
