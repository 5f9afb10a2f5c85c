//! Memory access with cache hints: stores that bypass the cache, and prefetches.

/// The size in bytes from which results bypass the cache. The cache can't hold such a result together with its
/// operands.
pub const LARGE: usize = 16 << 20;

/// Copies bytes without reading the destination into the cache. Other threads may read them after a [`fence`].
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
pub(crate) unsafe fn stream(src: *const u8, dst: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's contract; the aligned whole lines, and the bytes before and after them, are within the
    // range.
    unsafe {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        const LINE: usize = 64;
        let head = dst.align_offset(LINE).min(bytes);
        let lines = (bytes - head) / LINE;
        let tail = head + lines * LINE;
        dst.copy_from_nonoverlapping(src, head);
        for line in 0..lines {
            let (from, to) = (src.add(head + line * LINE), dst.add(head + line * LINE));
            for k in 0..LINE / size_of::<__m128i>() {
                _mm_stream_si128(to.cast::<__m128i>().add(k), _mm_loadu_si128(from.cast::<__m128i>().add(k)));
            }
        }
        dst.add(tail).copy_from_nonoverlapping(src.add(tail), bytes - tail);
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's contract.
    unsafe {
        dst.copy_from_nonoverlapping(src, bytes)
    }
}

/// Ends a series of [`stream`]s.
#[inline]
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has this instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

/// Prefetches elements that are read soon, if the target supports it.
#[inline(always)]
pub(crate) fn prefetch<T>(start: *const T, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..len * size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch doesn't access memory, so any address is valid.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.cast::<i8>().wrapping_add(line)) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, len);
}
