//! [`Buffer`]: a block of memory of one device.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::OnceLock;

use minitensor_kernels::threads::parallel_for;

use super::allocator::{Allocator, allocator};
use super::cache;
use super::device::{Device, DeviceKind};
use super::usage::count;
use crate::error::{Error, Result, counted};
use crate::scoped::Scoped;
use crate::stop::stoppable;

/// A block of memory of one device. Dropping it frees or releases the memory.
pub struct Buffer {
    data: NonNull<u8>,
    bytes: usize,
    owner: Owner,
}

/// The fewest bytes for a thread to fill with zeros.
const GRAIN: usize = 1 << 20;
/// Up to this many bytes are stored inline, which saves an allocation.
const SMALL: usize = 64;
type Small = [u128; SMALL / 16];

enum Owner {
    Allocated,
    /// Allocated by the [cache](super::cache).
    Cached,
    Inline(UnsafeCell<MaybeUninit<Small>>),
    /// Owned by a `Vec` or a similar value.
    Adopted(#[allow(dead_code)] Box<dyn Any + Send + Sync>),
    Foreign {
        _keep: Box<dyn Any + Send + Sync>,
        writable: bool,
        device: Device,
        /// That of the device; `None` for main memory.
        allocator: Option<&'static dyn Allocator>,
    },
    /// Memory of a [backend](crate::backend).
    Device(Device, &'static dyn Allocator),
    /// Memory that a [postponed](crate::lazy) call provides.
    Postponed(OnceLock<Box<Buffer>>),
    Meta,
}

// SAFETY: the memory consists of plain numbers, and its owner is `Send`. As with NumPy arrays, the caller must synchronize
// in-place operations with other threads that use the memory.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

/// Larger allocations are aligned to a cache line. For smaller ones the allocator's own alignment suffices, and is cheaper.
const fn alignment(bytes: usize) -> usize {
    if bytes < 1024 { 16 } else { 64 }
}

thread_local! {
    /// What new memory of the thread is filled with.
    static FILLED: Cell<Option<u8>> = const { Cell::new(None) };
}

/// Runs a function while new memory, whose content is otherwise unspecified, is filled with a byte.
pub(crate) fn with_filled_memory<R>(byte: u8, run: impl FnOnce() -> R) -> R {
    let _filled = Scoped::new(&FILLED, Some(byte));
    run()
}

#[cold]
fn refuse(bytes: usize) -> Error {
    Error::memory(format!("cannot allocate {} for a tensor", counted(bytes, "byte")))
}

impl Buffer {
    /// Memory of a device, with unspecified content.
    pub fn uninit(bytes: usize, device: Device) -> Result<Buffer> {
        match device.kind() {
            DeviceKind::Cpu => Buffer::uninit_cpu(bytes),
            DeviceKind::Meta => Ok(Buffer { data: NonNull::dangling(), bytes, owner: Owner::Meta }),
            _ => {
                let allocator = allocator(device)?;
                let data = allocator.allocate(bytes.max(1))?;
                Ok(Buffer { data, bytes, owner: Owner::Device(device, allocator) })
            }
        }
    }

    /// Memory of the CPU, with unspecified content.
    pub fn uninit_cpu(bytes: usize) -> Result<Buffer> {
        let buffer = Buffer::unfilled(bytes)?;
        if let Some(byte) = FILLED.get() {
            // SAFETY: the buffer has these bytes, and is not shared yet.
            unsafe { buffer.data().write_bytes(byte, bytes) };
        }
        Ok(buffer)
    }

    fn unfilled(bytes: usize) -> Result<Buffer> {
        if bytes <= SMALL {
            return Ok(Buffer::small(bytes, MaybeUninit::uninit()));
        }
        if bytes >= cache::LEAST {
            return Buffer::cached(bytes);
        }
        Buffer::allocate(bytes, |layout| {
            // SAFETY: the size of the layout is not 0.
            unsafe { alloc(layout) }
        })
    }

    /// Memory of the CPU, filled with zeros.
    pub fn zeroed(bytes: usize) -> Result<Buffer> {
        if bytes <= SMALL {
            return Ok(Buffer::small(bytes, MaybeUninit::zeroed()));
        }
        if bytes >= cache::LEAST {
            let buffer = Buffer::cached(bytes)?;
            stoppable(|| {
                parallel_for(bytes, GRAIN, |range| {
                    // SAFETY: the buffer has these bytes, and is not shared yet. The ranges of the calls are disjoint.
                    unsafe { buffer.data().add(range.start).write_bytes(0, range.len()) };
                });
                Ok(())
            })?;
            return Ok(buffer);
        }
        Buffer::allocate(bytes, |layout| {
            // SAFETY: the size of the layout is not 0.
            unsafe { alloc_zeroed(layout) }
        })
    }

    fn cached(bytes: usize) -> Result<Buffer> {
        let data = cache::take(bytes).ok_or_else(|| refuse(bytes))?;
        count(bytes);
        Ok(Buffer { data, bytes, owner: Owner::Cached })
    }

    #[inline]
    fn small(bytes: usize, content: MaybeUninit<Small>) -> Buffer {
        count(bytes);
        let owner = Owner::Inline(UnsafeCell::new(content));
        Buffer { data: NonNull::dangling(), bytes, owner }
    }

    fn allocate(bytes: usize, take: impl FnOnce(Layout) -> *mut u8) -> Result<Buffer> {
        let layout = Layout::from_size_align(bytes.max(1), alignment(bytes)).map_err(|_| refuse(bytes))?;
        let data = NonNull::new(take(layout)).ok_or_else(|| refuse(bytes))?;
        count(bytes);
        Ok(Buffer { data, bytes, owner: Owner::Allocated })
    }

    /// Memory of the CPU that [`Buffer::provide`] provides later.
    pub(crate) fn postponed(bytes: usize) -> Buffer {
        Buffer { data: NonNull::dangling(), bytes, owner: Owner::Postponed(OnceLock::new()) }
    }

    /// Provides the memory of a postponed buffer. Only the first call has an effect.
    pub(crate) fn provide(&self, memory: Buffer) {
        if let Owner::Postponed(later) = &self.owner {
            debug_assert_eq!(memory.bytes, self.bytes);
            let _ = later.set(Box::new(memory));
        }
    }

    /// Memory that the buffer takes over, kept alive by `keep`.
    ///
    /// # Safety
    /// As for [`Buffer::foreign`].
    pub(crate) unsafe fn adopted(data: NonNull<u8>, bytes: usize, keep: Box<dyn Any + Send + Sync>) -> Buffer {
        count(bytes);
        Buffer { data, bytes, owner: Owner::Adopted(keep) }
    }

    /// Main memory of an external owner, kept alive by `keep`.
    ///
    /// # Safety
    /// While `keep` lives, `data` must be valid for reads of `bytes` bytes, and for writes if `writable`. It must be aligned for
    /// the elements that tensors read from it.
    pub unsafe fn foreign(data: NonNull<u8>, bytes: usize, writable: bool, keep: Box<dyn Any + Send + Sync>) -> Buffer {
        let owner = Owner::Foreign { _keep: keep, writable, device: Device::Cpu, allocator: None };
        Buffer { data, bytes, owner }
    }

    /// Memory of an external owner on a device, kept alive by `keep`.
    ///
    /// # Errors
    /// If this process has no such device, or the device has no memory.
    ///
    /// # Safety
    /// As for [`Buffer::foreign`], but the kernels and the allocator of the device read and write the memory.
    pub unsafe fn foreign_on(
        device: Device,
        data: NonNull<u8>,
        bytes: usize,
        writable: bool,
        keep: Box<dyn Any + Send + Sync>,
    ) -> Result<Buffer> {
        let allocator = if device == Device::Cpu { None } else { Some(allocator(device)?) };
        Ok(Buffer { data, bytes, owner: Owner::Foreign { _keep: keep, writable, device, allocator } })
    }

    /// The allocator of the memory, if it is that of a [backend](crate::backend).
    pub(crate) fn allocator(&self) -> Option<&'static dyn Allocator> {
        match self.owner {
            Owner::Device(_, allocator) => Some(allocator),
            Owner::Foreign { allocator, .. } => allocator,
            _ => None,
        }
    }

    /// A pointer to the first byte; null if the memory has not been provided. Inline memory moves with the buffer, so the
    /// pointer is stable only once that is in an `Arc`.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        match &self.owner {
            Owner::Inline(content) => content.get().cast(),
            Owner::Postponed(later) => later.get().map_or(std::ptr::null_mut(), |memory| memory.data()),
            _ => self.data.as_ptr(),
        }
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The device of the memory.
    #[inline]
    pub fn device(&self) -> Device {
        match self.owner {
            Owner::Device(device, _) | Owner::Foreign { device, .. } => device,
            Owner::Meta => Device::Meta,
            _ => Device::Cpu,
        }
    }

    /// Whether in-place changes are allowed.
    pub fn is_writable(&self) -> bool {
        !matches!(self.owner, Owner::Foreign { writable: false, .. })
    }

    /// Whether it is memory of an external owner, which may change it at any time.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.owner, Owner::Foreign { .. })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Owner::Allocated | Owner::Cached | Owner::Inline(_) | Owner::Adopted(_) = self.owner {
            count(self.bytes.wrapping_neg());
        }
        // SAFETY: each block was taken with this size, by the owner's function, and no tensor uses it.
        unsafe {
            match self.owner {
                Owner::Cached => cache::give(self.data, self.bytes),
                Owner::Device(_, allocator) => allocator.free(self.data, self.bytes.max(1)),
                Owner::Allocated => {
                    let (size, alignment) = (self.bytes.max(1), alignment(self.bytes));
                    dealloc(self.data.as_ptr(), Layout::from_size_align_unchecked(size, alignment));
                }
                Owner::Inline(_) | Owner::Adopted(_) | Owner::Foreign { .. } | Owner::Postponed(_) | Owner::Meta => {}
            }
        }
    }
}
