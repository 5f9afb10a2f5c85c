//! The number of bytes that tensors own on the CPU.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// Counts an allocation.
#[inline]
pub(super) fn count(bytes: usize) {
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
