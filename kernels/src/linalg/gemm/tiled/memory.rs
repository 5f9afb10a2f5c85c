//! Buffers for packed parts of matrices, which threads reuse for the next product.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread::LocalKey;

use crate::memory::Line;
use crate::runtime::stop::Stop;

/// The maximum number of lines that are kept: 8 MiB.
const MOST: usize = 1 << 17;

/// The buffer that a thread keeps.
pub(crate) type Scratch = Cell<Vec<MaybeUninit<Line>>>;

thread_local! {
    /// The calling thread's buffer for panels that are packed for all threads.
    pub(super) static SHARED: Scratch = const { Cell::new(Vec::new()) };
    /// The buffer for what each thread packs for itself.
    pub(super) static OWN: Scratch = const { Cell::new(Vec::new()) };
    /// The images of a convolution, from which a thread packs panels.
    pub(crate) static IMAGES: Scratch = const { Cell::new(Vec::new()) };
}

/// Calls `f` with uninitialized memory for `n` elements.
pub(crate) fn with_memory<T>(kept: &'static LocalKey<Scratch>, n: usize, f: impl FnOnce(*mut T)) {
    if !try_with_memory(kept, n, f) {
        Stop::OutOfMemory(n, size_of::<T>()).raise()
    }
}

/// Like [`with_memory`], but returns false if memory is exhausted.
pub(crate) fn try_with_memory<T>(kept: &'static LocalKey<Scratch>, n: usize, f: impl FnOnce(*mut T)) -> bool {
    if n == 0 {
        f(ptr::dangling_mut());
        return true;
    }
    let Some(bytes) = n.checked_mul(size_of::<T>()) else { return false };
    let lines = bytes.div_ceil(size_of::<Line>());
    // Taken rather than borrowed, so that a product within `f` gets its own memory.
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
