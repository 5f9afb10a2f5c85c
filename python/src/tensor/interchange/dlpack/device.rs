//! [`DlDevice`]: the device of an array, as DLPack describes it.

use std::fmt;

use minitensor::{Device, Result, Tensor};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::runtime::stream::{self, has_streams};

const MAIN_MEMORY: i32 = 1;
const CUDA: i32 = 2;
/// Main memory that CUDA devices access, too.
const CUDA_HOST: i32 = 3;

/// `DLDevice`
#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
pub struct DlDevice {
    pub kind: i32,
    pub index: i32,
}

impl DlDevice {
    pub const CPU: DlDevice = DlDevice { kind: MAIN_MEMORY, index: 0 };

    /// The device of a tensor, whose elements are computed if that was postponed.
    ///
    /// # Errors
    /// If DLPack does not have the device.
    pub fn of(tensor: &Tensor) -> Result<DlDevice> {
        let device = tensor.device();
        if has_streams(device) {
            tensor.expect_values()?;
            return Ok(DlDevice::cuda(device));
        }
        tensor.expect_cpu()?;
        Ok(DlDevice::CPU)
    }

    /// A CUDA device.
    pub fn cuda(device: Device) -> DlDevice {
        DlDevice { kind: CUDA, index: device.index() as i32 }
    }

    /// The device that an object reports by `__dlpack_device__`, if it does.
    pub fn reported(object: &Bound<'_, PyAny>) -> Option<DlDevice> {
        // An object that cannot be exported reports the reason in `__dlpack__`.
        let (kind, index) = object.call_method0("__dlpack_device__").ok()?.extract().ok()?;
        Some(DlDevice { kind, index })
    }

    /// The device of this process.
    pub fn find(self) -> Option<Device> {
        match self.kind {
            MAIN_MEMORY | CUDA_HOST => Some(Device::Cpu),
            CUDA => stream::device(u32::try_from(self.index).ok()?),
            _ => None,
        }
    }

    /// As [`DlDevice::find`], for a new array: the memory of minitensor is not pinned.
    pub fn find_new(self) -> Option<Device> {
        self.find().filter(|_| self.kind != CUDA_HOST)
    }

    /// The error of an array on a device that this process does not have.
    #[cold]
    pub fn missing(self) -> PyErr {
        PyBufferError::new_err(format!(
            "the array is on {self}, but minitensor has no such device here; copy it to the CPU first"
        ))
    }
}

impl fmt::Display for DlDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DlDevice { kind, index } = self;
        match *kind {
            CUDA => write!(f, "device 'cuda:{index}' of DLPack type {kind}"),
            _ => write!(f, "a device of DLPack type {kind}"),
        }
    }
}
