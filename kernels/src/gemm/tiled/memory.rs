//! Memory for packed parts of matrices, which threads keep for their next product.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread::LocalKey;

use crate::memory::Line;
use crate::stop::Stop;

/// Lines that are kept at most: 8 MiB.
const MOST: usize = 1 << 17;

/// What a thread keeps.
pub(crate) type Kept = Cell<Vec<MaybeUninit<Line>>>;

thread_local! {
    /// What the thread that was asked for a product packs for all of them.
    pub(super) static SHARED: Kept = const { Cell::new(Vec::new()) };
    /// What each thread packs for itself.
    pub(super) static OWN: Kept = const { Cell::new(Vec::new()) };
    /// The images of a convolution, which a thread packs panels of.
    pub(crate) static IMAGES: Kept = const { Cell::new(Vec::new()) };
}

/// Calls `f` with memory for `n` elements, of which none has a value.
pub(crate) fn with_memory<T>(kept: &'static LocalKey<Kept>, n: usize, f: impl FnOnce(*mut T)) {
    if !try_with_memory(kept, n, f) {
        Stop::OutOfMemory(n, size_of::<T>()).raise()
    }
}

/// As [`with_memory`], unless there is no memory: false then.
pub(crate) fn try_with_memory<T>(kept: &'static LocalKey<Kept>, n: usize, f: impl FnOnce(*mut T)) -> bool {
    if n == 0 {
        f(ptr::dangling_mut());
        return true;
    }
    let Some(bytes) = n.checked_mul(size_of::<T>()) else { return false };
    let lines = bytes.div_ceil(size_of::<Line>());
    // Taken, not borrowed: a product within `f` gets memory of its own.
    let mut memory = kept.take();
    if memory.len() < lines {
        memory = Vec::new();
        if memory.try_reserve_exact(lines).is_err() {
            return false;
        }
        // SAFETY: the capacity is reserved, and lines need no value.
        unsafe { memory.set_len(lines) };
    }
    f(memory.as_mut_ptr().cast());
    if memory.len() <= MOST {
        kept.set(memory);
    }
    true
}
