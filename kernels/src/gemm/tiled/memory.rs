//! Memory for packed parts of matrices, which threads keep for their next product.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread::LocalKey;

/// Lines that are kept at most: 8 MiB.
const MOST: usize = 1 << 17;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Line {
    _bytes: [u8; 64],
}

/// What a thread keeps.
pub(super) type Kept = Cell<Vec<MaybeUninit<Line>>>;

thread_local! {
    /// What the thread that was asked for a product packs for all of them.
    pub(super) static SHARED: Kept = const { Cell::new(Vec::new()) };
    /// What each thread packs for itself.
    pub(super) static OWN: Kept = const { Cell::new(Vec::new()) };
}

/// Calls `f` with memory for `n` elements, of which none has a value.
pub(super) fn with_memory<T>(kept: &'static LocalKey<Kept>, n: usize, f: impl FnOnce(*mut T)) {
    if n == 0 {
        return f(ptr::dangling_mut());
    }
    let lines = (n * size_of::<T>()).div_ceil(size_of::<Line>());
    // Taken, not borrowed: whoever multiplies within `f` gets memory of his own.
    let mut memory = kept.take();
    if memory.len() < lines {
        memory = vec![MaybeUninit::uninit(); lines];
    }
    f(memory.as_mut_ptr().cast());
    if memory.len() <= MOST {
        kept.set(memory);
    }
}
