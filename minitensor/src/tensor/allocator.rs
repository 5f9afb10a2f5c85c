//! The memory of devices: [`Allocator`], and the registered kinds of devices.

use std::ptr::NonNull;
use std::sync::{Once, OnceLock};

use minitensor_kernels::Const;

use super::Tensor;
use super::device::{Device, DeviceKind};
use crate::backend::programs::{Elements, ProgramCall, RowsOfCall};
use crate::error::{Error, Result};

/// The memory of one device.
///
/// # Safety
/// Blocks that are allocated at the same time do not overlap.
pub unsafe trait Allocator: Send + Sync {
    /// A block of this many bytes, at least 1, with unspecified content, aligned to 64 bytes. The pointer is an address of
    /// the device, which the engine passes to kernels and to this allocator, and never reads from.
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>>;

    /// Frees a block.
    ///
    /// # Safety
    /// The block came from [`Allocator::allocate`] with this size, and is freed once.
    unsafe fn free(&self, block: NonNull<u8>, bytes: usize);

    /// Copies from main memory to the device.
    ///
    /// # Safety
    /// `to` is within a block, with room for the bytes.
    unsafe fn write(&self, from: &[u8], to: *mut u8) -> Result<()>;

    /// Copies from the device to main memory, after the kernels that write there.
    ///
    /// # Safety
    /// `from` is within a block, with as many bytes.
    unsafe fn read(&self, from: *const u8, to: &mut [u8]) -> Result<()>;

    /// The queue on which the device runs the calls of this thread, for kernels that need it. Null if there is none.
    fn stream(&self) -> *mut std::ffi::c_void {
        std::ptr::null_mut()
    }

    /// Waits for all that this thread has submitted.
    fn wait(&self) -> Result<()> {
        Ok(())
    }

    /// Waits for all that this thread has submitted, and returns the error of a kernel that found one.
    fn synchronize(&self) -> Result<()> {
        self.wait()
    }
}

/// A kind of device.
pub trait Backend: Send + Sync {
    /// The kind.
    fn kind(&self) -> DeviceKind;
    /// The memory of each device of this machine.
    fn devices(&self) -> &[&'static dyn Allocator];

    /// Why there are no devices.
    fn why_absent(&self) -> String {
        "this machine has none".into()
    }

    /// Whether it computes programs by code that it compiles for them. Otherwise each of their steps is a call of an op.
    fn compiles_programs(&self) -> bool {
        false
    }

    /// Computes a program over elements, or returns false if it does not compile the program.
    fn run_elements(&self, _call: &ProgramCall<'_>, _arguments: &Elements<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Computes a program over rows, or returns false if it does not compile the program.
    fn run_rows(&self, _call: &ProgramCall<'_>, _arguments: &RowsOfCall<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Copies elements between tensors of the same shape on one device, and converts them, or returns false if it does not.
    fn copy(&self, _from: &Tensor, _to: &Tensor) -> Result<bool> {
        Ok(false)
    }

    /// Fills a tensor with a number, or returns false if it does not.
    fn fill(&self, _tensor: &Tensor, _value: Const) -> Result<bool> {
        Ok(false)
    }
}

/// The entry by which a crate adds a backend.
pub struct BackendEntry(pub &'static dyn Backend);
inventory::collect!(BackendEntry);

/// The registered backends, by the number of their kind.
static BACKENDS: [OnceLock<&'static dyn Backend>; 32] = [const { OnceLock::new() }; 32];

/// Registers a backend. It stays for the life of the process, because tensors may use its memory.
///
/// # Errors
/// If the kind has a backend.
pub fn register(backend: &'static dyn Backend) -> Result<()> {
    let kind = backend.kind();
    let is_free = kind != DeviceKind::Cpu && kind != DeviceKind::Meta;
    match is_free && BACKENDS[kind.number()].set(backend).is_ok() {
        true => Ok(()),
        false => Err(Error::value(format!("device '{}' is already registered", kind.name()))),
    }
}

/// Registers the backends of linked crates, once.
fn link() {
    static LINKED: Once = Once::new();
    LINKED.call_once(|| {
        for BackendEntry(backend) in inventory::iter::<BackendEntry> {
            // A plugin may have registered the kind before.
            let _ = register(*backend);
        }
    });
}

/// The backend of a kind of device; `None` for the CPU.
#[inline]
pub(crate) fn backend(kind: DeviceKind) -> Option<&'static dyn Backend> {
    BACKENDS[kind.number()].get().copied()
}

/// Whether a device computes programs, and not each of their steps.
pub(crate) fn compiles_programs(device: Device) -> bool {
    device == Device::Cpu || backend(device.kind()).is_some_and(|backend| backend.compiles_programs())
}

/// The memory of the devices of a kind, other than the CPU.
fn devices(kind: DeviceKind) -> &'static [&'static dyn Allocator] {
    backend(kind).map_or(&[], |backend| backend.devices())
}

/// The number of devices of a kind.
fn count(kind: DeviceKind) -> usize {
    if kind == DeviceKind::Cpu || kind == DeviceKind::Meta { 1 } else { devices(kind).len() }
}

/// Waits until a device has computed what this thread submitted. Errors that it finds stay for [`synchronize`].
///
/// # Errors
/// If the device fails.
pub fn wait(device: Device) -> Result<()> {
    let computes_at_once = matches!(device.kind(), DeviceKind::Cpu | DeviceKind::Meta);
    if computes_at_once { Ok(()) } else { allocator(device)?.wait() }
}

/// Waits until a device has computed what this thread submitted. The CPU computes at once.
///
/// # Errors
/// The error of a call that the device found while it computed.
pub fn synchronize(device: Device) -> Result<()> {
    let computes_at_once = matches!(device.kind(), DeviceKind::Cpu | DeviceKind::Meta);
    if computes_at_once { Ok(()) } else { allocator(device)?.synchronize() }
}

/// The memory of a device.
pub(crate) fn allocator(device: Device) -> Result<&'static dyn Allocator> {
    devices(device.kind()).get(device.index() as usize).copied().ok_or_else(|| unknown(&device.to_string()))
}

impl Device {
    /// The device with that name, such as `cpu`, `cpu:0` or `meta`.
    ///
    /// # Errors
    /// If this process has no such device.
    pub fn parse(name: &str) -> Result<Device> {
        link();
        let (kind, text) = name.split_once(':').unwrap_or((name, "0"));
        let index = text.parse().ok().filter(|index: &u32| index.to_string() == text);
        let found = DeviceKind::find(kind).zip(index).map(|(kind, index)| Device::new(kind, index));
        found.filter(|device| device.exists()).ok_or_else(|| unknown(name))
    }

    /// Whether this process can use the device.
    pub fn exists(self) -> bool {
        (self.index() as usize) < count(self.kind())
    }

    /// The devices that this process can use.
    pub fn all() -> Vec<Device> {
        link();
        DeviceKind::all().flat_map(|kind| (0..count(kind)).map(move |index| Device::new(kind, index as u32))).collect()
    }
}

#[cold]
fn unknown(name: &str) -> Error {
    let kind = name.split(':').next().and_then(DeviceKind::find);
    if let Some(backend) = kind.and_then(backend).filter(|backend| backend.devices().is_empty()) {
        let why = backend.why_absent();
        return Error::runtime(format!("device '{name}' is not available: {why}; use device='cpu'"));
    }
    let all: Vec<String> = Device::all().iter().map(|device| format!("'{device}'")).collect();
    let (last, others) = all.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
    Error::value(format!("unknown device '{name}'; the devices are {} and {last}", others.join(", ")))
}
