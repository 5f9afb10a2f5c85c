//! The memory of devices: [`Allocator`], and the registered kinds of devices.

use std::ptr::NonNull;
use std::sync::OnceLock;

use super::device::{Device, DeviceKind};
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
}

/// A kind of device.
pub trait Backend: Send + Sync {
    /// The kind.
    fn kind(&self) -> DeviceKind;
    /// The memory of each device of this machine.
    fn devices(&self) -> &[&'static dyn Allocator];
}

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

/// The memory of the devices of a kind, other than the CPU.
fn devices(kind: DeviceKind) -> &'static [&'static dyn Allocator] {
    BACKENDS[kind.number()].get().map_or(&[], |backend| backend.devices())
}

/// The number of devices of a kind.
fn count(kind: DeviceKind) -> usize {
    if kind == DeviceKind::Cpu || kind == DeviceKind::Meta { 1 } else { devices(kind).len() }
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
        DeviceKind::all().flat_map(|kind| (0..count(kind)).map(move |index| Device::new(kind, index as u32))).collect()
    }
}

#[cold]
fn unknown(name: &str) -> Error {
    if name.split(':').next() == Some("cuda") {
        return Error::runtime(format!(
            "device '{name}' is not available: this build of minitensor runs on the CPU; use device='cpu'"
        ));
    }
    let all: Vec<String> = Device::all().iter().map(|device| format!("'{device}'")).collect();
    let (last, others) = all.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
    Error::value(format!("unknown device '{name}'; the devices are {} and {last}", others.join(", ")))
}
