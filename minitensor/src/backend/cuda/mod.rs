//! The devices `cuda`: NVIDIA GPUs.
//!
//! | file | contents |
//! |---|---|
//! | `driver.rs` | what a device does: [`Driver`] |
//! | `nvidia.rs` | by the CUDA driver and NVRTC, which are loaded when the first tensor is created there |
//! | `emulated.rs` | or by the CPU, which runs the same kernels compiled by a C compiler |
//! | `device.rs` | memory and kernels of one device |
//! | `layout.rs` | the dimensions that a kernel loops over |
//! | `elements.rs`, `rows.rs` | programs over elements and rows |
//! | `reductions.rs` | reductions whose definitions are loops of the CPU, as such programs |
//! | `natives.rs` | other ops whose definitions are loops of the CPU, in CUDA C |
//! | `matmul.rs` | matrix products, by cuBLAS |
//! | `order.rs` | running sums, and sorting |
//! | `libraries.rs` | finds NVIDIA's libraries |
//! | `copy.rs` | copies and constants, which are programs, too |

mod copy;
mod device;
mod driver;
mod elements;
mod emulated;
mod layout;
pub mod libraries;
mod matmul;
mod natives;
mod nvidia;
mod order;
mod reductions;
mod rows;

use std::sync::OnceLock;

use minitensor_kernels::Const;
use minitensor_kernels::cuda::Type;

use self::device::CudaDevice;
use super::programs::{Elements, ProgramCall, RowsOfCall};
use super::{Allocator, Backend, BackendEntry};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{DeviceKind, Tensor};

/// The environment variable that chooses the emulated device, by the value `emulated`.
const VARIABLE: &str = "MINITENSOR_CUDA";

/// The backend.
struct Cuda {
    found: OnceLock<Found>,
}

/// The devices of this machine, or why there are none.
struct Found {
    devices: Vec<&'static CudaDevice>,
    allocators: Vec<&'static dyn Allocator>,
    why_absent: String,
}

static CUDA: Cuda = Cuda { found: OnceLock::new() };
inventory::submit! { BackendEntry(&CUDA) }

impl Cuda {
    fn found(&self) -> &Found {
        self.found.get_or_init(|| {
            let drivers = match std::env::var(VARIABLE) {
                Ok(value) if value == "emulated" => emulated::all(),
                Ok(value) if !value.is_empty() => {
                    Err(Error::value(format!("the environment variable {VARIABLE} must be 'emulated', got {value:?}")))
                }
                _ => nvidia::all(),
            };
            let (drivers, why_absent) = match drivers {
                Ok(drivers) => (drivers, String::new()),
                Err(error) => (Vec::new(), error.to_string()),
            };
            let devices: Vec<&'static CudaDevice> =
                drivers.into_iter().map(|driver| &*Box::leak(Box::new(CudaDevice::new(driver)))).collect();
            let allocators = devices.iter().map(|device| *device as &dyn Allocator).collect();
            Found { devices, allocators, why_absent }
        })
    }

    fn device(&self, index: u32) -> Result<&'static CudaDevice> {
        self.found()
            .devices
            .get(index as usize)
            .copied()
            .ok_or_else(|| Error::runtime(format!("there is no device 'cuda:{index}'")))
    }
}

impl Backend for Cuda {
    fn kind(&self) -> DeviceKind {
        DeviceKind::named("cuda").unwrap_or_default()
    }

    fn devices(&self) -> &[&'static dyn Allocator] {
        &self.found().allocators
    }

    fn why_absent(&self) -> String {
        self.found().why_absent.clone()
    }

    fn compiles_programs(&self) -> bool {
        true
    }

    fn run_elements(&self, call: &ProgramCall<'_>, arguments: &Elements<'_>) -> Result<bool> {
        elements::run(self.device(call.device.index())?, call, arguments)
    }

    fn run_rows(&self, call: &ProgramCall<'_>, arguments: &RowsOfCall<'_>) -> Result<bool> {
        rows::run(self.device(call.device.index())?, call, arguments)
    }

    fn copy(&self, from: &Tensor, to: &Tensor) -> Result<bool> {
        copy::run(self.device(to.device().index())?, from, to)
    }

    fn fill(&self, tensor: &Tensor, value: Const) -> Result<bool> {
        copy::fill(self.device(tensor.device().index())?, tensor, value)
    }
}

/// The stream on which this thread submits its calls to a device, as an address. 0 is the default stream.
pub fn stream(index: u32) -> usize {
    device::stream(index)
}

/// Chooses the stream on which this thread submits its calls to a device. Returns the one before. The stream must exist while it is
/// chosen, and while memory that was allocated meanwhile is in use.
pub fn set_stream(index: u32, stream: usize) -> usize {
    device::set_stream(index, stream)
}

/// The name of a device, such as `NVIDIA H100`.
///
/// # Errors
/// If there is no such device.
pub fn name(index: u32) -> Result<String> {
    Ok(CUDA.device(index)?.driver().name())
}

/// The free bytes and all bytes of a device's memory.
///
/// # Errors
/// If there is no such device.
pub fn memory(index: u32) -> Result<(usize, usize)> {
    CUDA.device(index)?.driver().memory()
}

/// The type of a dtype in kernels. `None` for complex numbers.
fn type_of(dtype: DType) -> Option<Type> {
    Some(match dtype {
        DType::Bool => Type::Bool,
        DType::I8 => Type::I8,
        DType::I16 => Type::I16,
        DType::I32 => Type::I32,
        DType::I64 => Type::I64,
        DType::U8 => Type::U8,
        DType::U16 => Type::U16,
        DType::U32 => Type::U32,
        DType::U64 => Type::U64,
        DType::F16 => Type::F16,
        DType::Bf16 => Type::BF16,
        DType::F32 => Type::F32,
        DType::F64 => Type::F64,
        _ => return None,
    })
}
