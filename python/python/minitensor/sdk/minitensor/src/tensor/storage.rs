//! [`Storage`]: the memory behind tensors, shared by views.

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

/// A block of memory. Tensors share it; its version counts changes made in place.
pub struct Storage {
    data: NonNull<u8>,
    bytes: usize,
    owner: Owner,
    changes: Changes,
}

/// What tells who changes the memory, and behind whose back.
#[derive(Default)]
struct Changes {
    /// How often it was changed in place.
    version: AtomicU64,
    /// The version that the last recorded change made.
    recorded: AtomicU64,
    /// Whether a leaf that requires a gradient lies there.
    has_leaf: AtomicBool,
}

/// Bytes that are worth a thread to fill with zeros.
const GRAIN: usize = 1 << 20;
/// Up to this many bytes lie in the storage itself, which spares an allocation.
const SMALL: usize = 64;
type Small = [u128; SMALL / 16];

enum Owner {
    Allocated,
    /// From the [cache](super::cache).
    Cached,
    Inline(UnsafeCell<MaybeUninit<Small>>),
    /// That of a `Vec`, or the like.
    Adopted(#[allow(dead_code)] Box<dyn Any + Send + Sync>),
    Foreign {
        _keep: Box<dyn Any + Send + Sync>,
        writable: bool,
    },
    Meta,
}

// SAFETY: the memory is plain numbers; who writes to it while others read is what `version` is for, and in-place
// operations on memory that another thread uses are the caller's to order, as with NumPy arrays.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

/// Larger allocations start at a cache line; for smaller ones the allocator's own alignment is enough, and cheaper.
const fn alignment(bytes: usize) -> usize {
    if bytes < 1024 { 16 } else { 64 }
}

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// How many threads count what they allocate themselves.
static COUNTING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that tensors hold at the moment.
pub fn allocated_bytes() -> usize {
    ALLOCATED.load(Ordering::Relaxed)
}

/// The most bytes that tensors held at once, since the start or [`reset_peak_bytes`].
pub fn peak_bytes() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Forgets the peak: it is what tensors hold now.
pub fn reset_peak_bytes() {
    PEAK.store(allocated_bytes(), Ordering::Relaxed);
}

/// What `f` returns, and how many bytes more this thread's tensors hold after it; what other threads do meanwhile
/// doesn't count.
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
    // What is given back counts as a negative number.
    let now = ALLOCATED.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
    if now > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(now, Ordering::Relaxed);
    }
    if COUNTING.load(Ordering::Relaxed) != 0 {
        // A thread that is ending counts no more.
        let _ = HERE.try_with(|here| here.set(here.get().wrapping_add(bytes)));
    }
}

#[cold]
fn refuse(bytes: usize) -> Error {
    Error::memory(format!("can't allocate {bytes} bytes for a tensor"))
}

impl Storage {
    /// Memory with any content.
    pub fn uninit(bytes: usize) -> Result<Storage> {
        if bytes <= SMALL {
            return Ok(Storage::small(bytes, MaybeUninit::uninit()));
        }
        if bytes >= cache::LEAST {
            return Storage::cached(bytes);
        }
        Storage::allocate(bytes, |layout| {
            // SAFETY: the layout's size is not zero.
            unsafe { alloc(layout) }
        })
    }

    /// Memory of zeros.
    pub fn zeroed(bytes: usize) -> Result<Storage> {
        if bytes <= SMALL {
            return Ok(Storage::small(bytes, MaybeUninit::zeroed()));
        }
        if bytes >= cache::LEAST {
            let storage = Storage::cached(bytes)?;
            stoppable(|| {
                parallel_for(bytes, GRAIN, |range| {
                    // SAFETY: so many bytes are there, and nobody else knows of them. No other call writes to these.
                    unsafe { storage.data().add(range.start).write_bytes(0, range.len()) };
                });
                Ok(())
            })?;
            return Ok(storage);
        }
        Storage::allocate(bytes, |layout| {
            // SAFETY: the layout's size is not zero.
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

    /// No memory at all, only its size.
    pub fn meta(bytes: usize) -> Storage {
        Storage { data: NonNull::dangling(), bytes, owner: Owner::Meta, changes: Changes::default() }
    }

    /// Memory that is the tensor's from now on, kept alive by `keep`.
    ///
    /// # Safety
    /// As for [`Storage::foreign`].
    pub(crate) unsafe fn adopted(data: NonNull<u8>, bytes: usize, keep: Box<dyn Any + Send + Sync>) -> Storage {
        count(bytes);
        Storage { data, bytes, owner: Owner::Adopted(keep), changes: Changes::default() }
    }

    /// Somebody else's memory, kept alive by `keep`.
    ///
    /// # Safety
    /// `data` must be valid for `bytes` bytes, for reading and, if `writable`, for writing, as long as `keep` lives,
    /// and aligned for the elements that will be read from it.
    pub unsafe fn foreign(
        data: NonNull<u8>,
        bytes: usize,
        writable: bool,
        keep: Box<dyn Any + Send + Sync>,
    ) -> Storage {
        Storage { data, bytes, owner: Owner::Foreign { _keep: keep, writable }, changes: Changes::default() }
    }

    /// The first byte. It moves with the storage, until that is shared.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        match &self.owner {
            Owner::Inline(content) => content.get().cast(),
            _ => self.data.as_ptr(),
        }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it lies.
    #[inline]
    pub fn device(&self) -> Device {
        if matches!(self.owner, Owner::Meta) { Device::Meta } else { Device::Cpu }
    }

    /// Whether it may be changed in place.
    pub fn is_writable(&self) -> bool {
        !matches!(self.owner, Owner::Foreign { writable: false, .. })
    }

    /// How often it was changed in place.
    #[inline]
    pub fn version(&self) -> u64 {
        self.changes.version.load(Ordering::Acquire)
    }

    /// The version that the last recorded change in place made; 0 if there was none.
    #[inline]
    pub(crate) fn recorded(&self) -> u64 {
        self.changes.recorded.load(Ordering::Acquire)
    }

    /// The last change in place has a history.
    pub(crate) fn set_recorded(&self) {
        self.changes.recorded.store(self.version(), Ordering::Release);
    }

    /// Whether a leaf that requires a gradient lies here.
    pub(crate) fn has_leaf(&self) -> bool {
        self.changes.has_leaf.load(Ordering::Acquire)
    }

    pub(crate) fn set_has_leaf(&self, has_leaf: bool) {
        self.changes.has_leaf.store(has_leaf, Ordering::Release);
    }

    /// Counts one change in place.
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
            // SAFETY: taken in `cached` for as many bytes.
            unsafe { cache::give(self.data, self.bytes) }
        }
        if let Owner::Allocated = self.owner {
            // SAFETY: allocated in `allocate` with this very layout.
            unsafe {
                dealloc(self.data.as_ptr(), Layout::from_size_align_unchecked(self.bytes.max(1), alignment(self.bytes)))
            }
        }
    }
}
