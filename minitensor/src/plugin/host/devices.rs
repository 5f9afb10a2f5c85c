//! Devices of plugins, and kernels of plugins for any device.

use std::any::Any;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use super::calls::run_on_arrays;
use super::read::table;
use crate::backend::{self, Allocator, Backend};
use crate::dtype::DType;
use crate::error::{Error, Result, counted};
use crate::fork::lock::try_lock;
use crate::op::{ArrayKernel, KernelCall, Kernels, OpRef, registry};
use crate::plugin::abi::{self, most, slice};
use crate::plugin::ffi::checked;
use crate::tensor::DeviceKind;

/// The most devices of one kind.
const MOST_DEVICES: i32 = 64;

/// A device of a plugin.
pub struct LoadedDevice {
    table: &'static abi::Device,
    kind: DeviceKind,
    functions: Functions,
}

/// The functions of a device.
#[derive(Clone, Copy)]
struct Functions {
    allocate: abi::DeviceAllocateFn,
    release: abi::DeviceReleaseFn,
    write: abi::DeviceWriteFn,
    read: abi::DeviceReadFn,
}

// SAFETY: the table is a constant of the plugin. The ABI requires that its functions may be called on any thread.
unsafe impl Send for LoadedDevice {}
// SAFETY: as above.
unsafe impl Sync for LoadedDevice {}

/// The tables of the registered devices, and of kernels with their ops. A plugin that is loaded again registers the same
/// tables again, and new ops.
static KNOWN: Mutex<Vec<(usize, Option<OpRef>)>> = Mutex::new(Vec::new());

/// Runs `register` if the table is not registered yet for this op.
fn once<T>(table: &'static T, op: Option<&OpRef>, register: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let address = std::ptr::from_ref(table).addr();
    let is_same = |other: &Option<OpRef>| match (other, op) {
        (Some(other), Some(op)) => other.is(op),
        (other, op) => other.is_none() && op.is_none(),
    };
    if !known.iter().any(|(table, op)| *table == address && is_same(op)) {
        register()?;
        known.push((address, op.cloned()));
    }
    Ok(())
}

/// Takes the lock of the known tables before a fork. `None` if another thread holds it.
pub(super) fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&KNOWN)
}

impl LoadedDevice {
    /// Reads a table.
    ///
    /// # Safety
    /// The pointer is null, or to a table that is valid as the ABI requires and lives for ever.
    pub unsafe fn read(pointer: *const abi::Device) -> Result<LoadedDevice> {
        // SAFETY: by the contract of this function.
        let (table, name) = unsafe {
            let table = table(pointer, "a device")?;
            (table, table.name.line(most::NAME).map_err(|e| e.context("the name of a device"))?)
        };
        let kind = DeviceKind::named(name)?;
        let (Some(allocate), Some(release), Some(write), Some(read)) =
            (table.allocate, table.release, table.write, table.read)
        else {
            return Err(Error::value(format!(
                "device '{name}' needs the functions allocate, release, write and read; one of them is a null pointer"
            )));
        };
        if !(1..=MOST_DEVICES).contains(&table.count) {
            let count = table.count;
            return Err(Error::value(format!("device '{name}' has a count of {count}, expected 1 to {MOST_DEVICES}")));
        }
        Ok(LoadedDevice { table, kind, functions: Functions { allocate, release, write, read } })
    }

    /// Registers the device. It stays for the life of the process.
    pub fn register(&self) -> Result<()> {
        once(self.table, None, || self.register_first())
    }

    fn register_first(&self) -> Result<()> {
        let LoadedDevice { table, functions, .. } = *self;
        let memory = |index| -> &'static dyn Allocator { Box::leak(Box::new(Memory { table, functions, index })) };
        let devices = (0..table.count).map(memory).collect();
        backend::register(Box::leak(Box::new(PluginBackend { kind: self.kind, devices })))
    }
}

struct PluginBackend {
    kind: DeviceKind,
    devices: Vec<&'static dyn Allocator>,
}

impl Backend for PluginBackend {
    fn kind(&self) -> DeviceKind {
        self.kind
    }

    fn devices(&self) -> &[&'static dyn Allocator] {
        &self.devices
    }
}

/// The memory of one device of a plugin.
struct Memory {
    table: &'static abi::Device,
    functions: Functions,
    index: i32,
}

// SAFETY: the table is a constant of the plugin. The ABI requires that its functions may be called on any thread.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

// SAFETY: the ABI requires that blocks do not overlap.
unsafe impl Allocator for Memory {
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>> {
        let mut block = std::ptr::null_mut();
        let refused =
            || Error::memory(format!("cannot allocate {} on device '{}'", counted(bytes, "byte"), self.name()));
        // SAFETY: the function of the plugin is called as the ABI requires.
        checked(|sink| {
            block = unsafe { (self.functions.allocate)(self.table.context, self.index, bytes, sink) };
            if block.is_null() { abi::code::MEMORY as i32 } else { 0 }
        })
        .map_err(|error| if error.message().is_empty() { refused() } else { error })?;
        NonNull::new(block.cast()).ok_or_else(refused)
    }

    unsafe fn free(&self, block: NonNull<u8>, bytes: usize) {
        // SAFETY: the function of the plugin is called as the ABI requires, with a block that it allocated.
        unsafe { (self.functions.release)(self.table.context, self.index, block.as_ptr().cast(), bytes) }
    }

    unsafe fn write(&self, from: &[u8], to: *mut u8) -> Result<()> {
        // SAFETY: the function of the plugin is called as the ABI requires.
        checked(|sink| unsafe {
            (self.functions.write)(self.table.context, self.index, to.cast(), from.as_ptr().cast(), from.len(), sink)
        })
    }

    unsafe fn read(&self, from: *const u8, to: &mut [u8]) -> Result<()> {
        // SAFETY: the function of the plugin is called as the ABI requires.
        checked(|sink| unsafe {
            (self.functions.read)(self.table.context, self.index, to.as_mut_ptr().cast(), from.cast(), to.len(), sink)
        })
    }

    fn stream(&self) -> *mut c_void {
        // SAFETY: the function of the plugin is called as the ABI requires.
        self.table.stream.map_or(std::ptr::null_mut(), |stream| unsafe { stream(self.table.context, self.index) })
    }
}

impl Memory {
    fn name(&self) -> &'static str {
        // SAFETY: the name was checked when the table was read.
        unsafe { self.table.name.get(most::NAME) }.unwrap_or_default()
    }
}

/// A kernel of a plugin, for an op of any plugin and a kind of device.
pub struct LoadedKernel {
    table: &'static abi::DeviceKernel,
    op: &'static str,
    kind: DeviceKind,
    dtypes: Vec<DType>,
    run: abi::CallFn,
}

// SAFETY: the table is a constant of the plugin. The ABI requires that its functions may be called on any thread.
unsafe impl Send for LoadedKernel {}
// SAFETY: as above.
unsafe impl Sync for LoadedKernel {}

impl LoadedKernel {
    /// Reads a table.
    ///
    /// # Safety
    /// The pointer is null, or to a table that is valid as the ABI requires and lives for ever.
    pub unsafe fn read(pointer: *const abi::DeviceKernel) -> Result<LoadedKernel> {
        // SAFETY: by the contract of this function.
        unsafe {
            let table = table(pointer, "a kernel")?;
            let op = table.op.line(most::NAME).map_err(|e| e.context("the op of a kernel"))?;
            let within = |e: Error| e.context(format!("a kernel of op '{op}'"));
            let kind = DeviceKind::named(table.device.line(most::NAME).map_err(within)?).map_err(within)?;
            let dtypes = slice(table.dtypes, table.n_dtypes, most::PARTS, "dtypes").map_err(within)?;
            let dtypes = dtypes.iter().map(|n| abi::dtype(*n)).collect::<Result<_>>().map_err(within)?;
            let run = table.run.ok_or_else(|| within(Error::value("the function is a null pointer")))?;
            Ok(LoadedKernel { table, op, kind, dtypes, run })
        }
    }

    /// The op of the kernel: one of these, or a registered one.
    pub fn target(&self, ops: &[OpRef]) -> Result<OpRef> {
        let own = ops.iter().find(|op| op.name == self.op).cloned();
        let op = own.map_or_else(|| registry::get(self.op), Ok);
        let op = op.map_err(|e| e.context(format!("a kernel for device '{}'", self.kind.name())))?;
        if !self.dtypes.is_empty() && self.dtypes.len() != op.generics.len() {
            return Err(Error::value(format!(
                "a kernel of op '{}' for device '{}' has {}, expected one for each of its {}, or none \
                 for a kernel of all dtypes",
                self.op,
                self.kind.name(),
                counted(self.dtypes.len(), "dtype"),
                counted(op.generics.len(), "dtype variable")
            )));
        }
        Ok(op)
    }

    /// Adds the kernel to the table of the op. It stays for the life of the process.
    pub fn add_to(self, op: &OpRef) -> Result<()> {
        once(self.table, Some(op), || {
            let (kind, dtypes) = (self.kind, self.dtypes.clone());
            let kernel: ArrayKernel = Arc::new(move |call| self.call(call));
            op.kernels.add(kind, Kernels::Arrays(vec![(dtypes, kernel)]));
            Ok(())
        })
    }
    fn call(&self, call: &KernelCall<'_>) -> Result<()> {
        run_on_arrays(self.run, self.table.context, call)
    }
}
