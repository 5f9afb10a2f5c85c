//! [`Storage`]: memory that tensors share, and the count of its in-place changes.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::buffer::Buffer;
use crate::dispatch::capture;
use crate::graph::record;

/// A block of memory that tensors share. Its version counts in-place changes.
pub struct Storage {
    buffer: Buffer,
    changes: Changes,
    /// The number of its creation, if a graph was being recorded.
    birth: u64,
}

/// The state that detects in-place changes to shared memory.
#[derive(Default)]
struct Changes {
    /// The number of in-place changes.
    version: AtomicU64,
    /// The version after the last recorded change.
    recorded: AtomicU64,
    /// Whether another library got the address of the memory, so that it may change it at any time.
    is_exported: AtomicBool,
    /// The number of sets of postponed calls that read or write the memory.
    postponed: AtomicU32,
}

impl From<Buffer> for Storage {
    fn from(buffer: Buffer) -> Storage {
        let birth = if capture::is_active() { record::birth() } else { 0 };
        Storage { buffer, changes: Changes::default(), birth }
    }
}

impl Deref for Storage {
    type Target = Buffer;
    #[inline(always)]
    fn deref(&self) -> &Buffer {
        &self.buffer
    }
}

impl Storage {
    /// The number of in-place changes.
    #[inline]
    pub fn version(&self) -> u64 {
        self.changes.version.load(Ordering::Acquire)
    }

    /// The version after the last recorded in-place change; 0 if there was none.
    #[inline]
    pub(crate) fn recorded(&self) -> u64 {
        self.changes.recorded.load(Ordering::Acquire)
    }

    /// Marks the last in-place change as recorded.
    pub(crate) fn set_recorded(&self) {
        self.changes.recorded.store(self.version(), Ordering::Release);
    }

    /// The number of its creation during a recording; 0 if it was created at another time.
    pub(crate) fn birth(&self) -> u64 {
        self.birth
    }

    /// Memory of the CPU that a postponed call provides.
    pub(crate) fn postponed(bytes: usize) -> Storage {
        Buffer::postponed(bytes).into()
    }

    /// Another storage with the same memory. It counts its changes for itself. `None` if there is no memory, or not yet.
    pub(crate) fn alias(self: &Arc<Storage>) -> Option<Arc<Storage>> {
        let data = NonNull::new(self.data())?;
        // SAFETY: the buffer keeps this storage, which keeps the memory in its place.
        let buffer = unsafe {
            Buffer::foreign_on(self.device(), data, self.bytes(), self.is_writable(), Box::new(self.clone()))
        };
        Some(Arc::new(buffer.ok()?.into()))
    }

    /// Notes that another library gets the address of the memory.
    pub fn set_exported(&self) {
        self.changes.is_exported.store(true, Ordering::Release);
    }

    /// Whether code that this library does not see may change the memory.
    pub(crate) fn is_shared_outside(&self) -> bool {
        self.is_foreign() || self.changes.is_exported.load(Ordering::Acquire)
    }

    /// Whether [postponed](crate::lazy) calls read or write the memory.
    #[inline(always)]
    pub(crate) fn is_postponed(&self) -> bool {
        self.changes.postponed.load(Ordering::Acquire) != 0
    }

    /// Notes that postponed calls read or write the memory.
    pub(crate) fn postpone(&self) {
        self.changes.postponed.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that these calls have been computed.
    pub(crate) fn release(&self) {
        self.changes.postponed.fetch_sub(1, Ordering::AcqRel);
    }

    /// Takes the memory out of the storage.
    pub(crate) fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// Counts an in-place change.
    pub fn bump(&self) {
        self.changes.version.fetch_add(1, Ordering::AcqRel);
    }
}
