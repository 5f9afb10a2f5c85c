//! [`Storage`]: the memory of tensors, shared by views.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use minitensor_kernels::threads::parallel_for;

use super::cache;
use super::device::Device;
use crate::error::{Error, Result};
use crate::stop::stoppable;

/// A block of memory that tensors share. Its version counts in-place changes.
pub struct Storage {
    data: NonNull<u8>,
    bytes: usize,
    owner: Owner,
    changes: Changes,
}

/// The state that detects in-place changes to shared memory.
#[derive(Default)]
struct Changes {
    /// The number of in-place changes.
    version: AtomicU64,
    /// The version after the last recorded change.
    recorded: AtomicU64,
    /// Whether the memory is that of a leaf that requires a gradient.
    has_leaf: AtomicBool,
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
    },
    Meta,
}

// SAFETY: the memory consists of plain numbers, and its owner is `Send`. As with NumPy arrays, the caller must synchronize
// in-place operations with other threads that use the memory.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

/// Larger allocations are aligned to a cache line. For smaller ones the allocator's own alignment suffices, and is cheaper.
const fn alignment(bytes: usize) -> usize {
    if bytes < 1024 { 16 } else { 64 }
}

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// The number of threads in [`bytes_kept`], which count their own allocations.
static COUNTING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// The number of bytes that tensors own now.
pub fn allocated_bytes() -> usize {
    ALLOCATED.load(Ordering::Relaxed)
}

/// The maximum of [`allocated_bytes`] since the start of the process or the last [`reset_peak_bytes`].
pub fn peak_bytes() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Resets the peak to [`allocated_bytes`].
pub fn reset_peak_bytes() {
    PEAK.store(allocated_bytes(), Ordering::Relaxed);
}

/// The result of `f`, and the increase in bytes that this thread has allocated for tensors. Other threads are not counted.
pub(crate) fn bytes_kept<R>(f: impl FnOnce() -> R) -> (R, isize) {
    struct Counting;
    impl Drop for Counting {
        fn drop(&mut self) {
            COUNTING.fetch_sub(1, Ordering::Relaxed);
        }
    }
    COUNTING.fetch_add(1, Ordering::Relaxed);
    let counting = Counting;
    let before = HERE.get();
    let result = f();
    let kept = HERE.get().wrapping_sub(before) as isize;
    drop(counting);
    (result, kept)
}

#[inline]
fn count(bytes: usize) {
    // Freed bytes are added as a negative number, in two's complement.
    let now = ALLOCATED.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
    if now > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(now, Ordering::Relaxed);
    }
    if COUNTING.load(Ordering::Relaxed) != 0 {
        // A thread that is exiting does not count: its thread-local value is destroyed.
        let _ = HERE.try_with(|here| here.set(here.get().wrapping_add(bytes)));
    }
}

#[cold]
fn refuse(bytes: usize) -> Error {
    Error::memory(format!("can't allocate {bytes} bytes for a tensor"))
}

impl Storage {
    /// Memory with unspecified content.
    pub fn uninit(bytes: usize) -> Result<Storage> {
        if bytes <= SMALL {
            return Ok(Storage::small(bytes, MaybeUninit::uninit()));
        }
        if bytes >= cache::LEAST {
            return Storage::cached(bytes);
        }
        Storage::allocate(bytes, |layout| {
            // SAFETY: the size of the layout is not 0.
            unsafe { alloc(layout) }
        })
    }

    /// Memory filled with zeros.
    pub fn zeroed(bytes: usize) -> Result<Storage> {
        if bytes <= SMALL {
            return Ok(Storage::small(bytes, MaybeUninit::zeroed()));
        }
        if bytes >= cache::LEAST {
            let storage = Storage::cached(bytes)?;
            stoppable(|| {
                parallel_for(bytes, GRAIN, |range| {
                    // SAFETY: the storage has these bytes, and is not shared yet. The ranges of the calls are disjoint.
                    unsafe { storage.data().add(range.start).write_bytes(0, range.len()) };
                });
                Ok(())
            })?;
            return Ok(storage);
        }
        Storage::allocate(bytes, |layout| {
            // SAFETY: the size of the layout is not 0.
            unsafe { alloc_zeroed(layout) }
        })
    }

    fn cached(bytes: usize) -> Result<Storage> {
        let data = cache::take(bytes).ok_or_else(|| refuse(bytes))?;
        count(bytes);
        Ok(Storage { data, bytes, owner: Owner::Cached, changes: Changes::default() })
    }

    #[inline]
    fn small(bytes: usize, content: MaybeUninit<Small>) -> Storage {
        count(bytes);
        let owner = Owner::Inline(UnsafeCell::new(content));
        Storage { data: NonNull::dangling(), bytes, owner, changes: Changes::default() }
    }

    fn allocate(bytes: usize, take: impl FnOnce(Layout) -> *mut u8) -> Result<Storage> {
        let layout = Layout::from_size_align(bytes.max(1), alignment(bytes)).map_err(|_| refuse(bytes))?;
        let data = NonNull::new(take(layout)).ok_or_else(|| refuse(bytes))?;
        count(bytes);
        Ok(Storage { data, bytes, owner: Owner::Allocated, changes: Changes::default() })
    }

    /// A storage with a size but no memory.
    pub fn meta(bytes: usize) -> Storage {
        Storage { data: NonNull::dangling(), bytes, owner: Owner::Meta, changes: Changes::default() }
    }

    /// Memory that the storage takes over, kept alive by `keep`.
    ///
    /// # Safety
    /// As for [`Storage::foreign`].
    pub(crate) unsafe fn adopted(data: NonNull<u8>, bytes: usize, keep: Box<dyn Any + Send + Sync>) -> Storage {
        count(bytes);
        Storage { data, bytes, owner: Owner::Adopted(keep), changes: Changes::default() }
    }

    /// Memory of an external owner, kept alive by `keep`.
    ///
    /// # Safety
    /// While `keep` lives, `data` must be valid for reads of `bytes` bytes, and for writes if `writable`. It must be aligned for
    /// the elements that tensors read from it.
    pub unsafe fn foreign(
        data: NonNull<u8>,
        bytes: usize,
        writable: bool,
        keep: Box<dyn Any + Send + Sync>,
    ) -> Storage {
        Storage { data, bytes, owner: Owner::Foreign { _keep: keep, writable }, changes: Changes::default() }
    }

    /// A pointer to the first byte. Inline memory moves with the storage, so the pointer is stable only once that is in an `Arc`.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        match &self.owner {
            Owner::Inline(content) => content.get().cast(),
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
        if matches!(self.owner, Owner::Meta) { Device::Meta } else { Device::Cpu }
    }

    /// Whether in-place changes are allowed.
    pub fn is_writable(&self) -> bool {
        !matches!(self.owner, Owner::Foreign { writable: false, .. })
    }

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

    /// Whether the memory is that of a leaf that requires a gradient.
    pub(crate) fn has_leaf(&self) -> bool {
        self.changes.has_leaf.load(Ordering::Acquire)
    }

    pub(crate) fn set_has_leaf(&self, has_leaf: bool) {
        self.changes.has_leaf.store(has_leaf, Ordering::Release);
    }

    /// Counts an in-place change.
    pub fn bump(&self) {
        self.changes.version.fetch_add(1, Ordering::AcqRel);
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Owner::Allocated | Owner::Cached | Owner::Inline(_) | Owner::Adopted(_) = self.owner {
            count(self.bytes.wrapping_neg());
        }
        if let Owner::Cached = self.owner {
            // SAFETY: `cached` took the block for the same number of bytes, and no tensor uses it.
            unsafe { cache::give(self.data, self.bytes) }
        }
        if let Owner::Allocated = self.owner {
            // SAFETY: `allocate` allocated the block with this layout, and no tensor uses it.
            unsafe {
                dealloc(self.data.as_ptr(), Layout::from_size_align_unchecked(self.bytes.max(1), alignment(self.bytes)))
            }
        }
    }
}
