//! Memory past the cache: what is written and not read soon, and what is read soon.

/// Bytes from which on a result is written past the cache, which, with what the result is made of, can't hold it.
pub const LARGE: usize = 16 << 20;

/// Copies bytes without reading what they overwrite. Other threads may look at them after a [`fence`].
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
pub(crate) unsafe fn stream(src: *const u8, dst: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise: whole lines that are aligned, and what is before and after them.
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
    // SAFETY: the caller's promise.
    unsafe {
        dst.copy_from_nonoverlapping(src, bytes)
    }
}

/// Ends a series of [`stream`]s.
#[inline]
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

/// Asks for elements that are soon read, if there are any there.
#[inline(always)]
pub(crate) fn prefetch<T>(start: *const T, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..len * size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: nothing is read: any address will do.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.cast::<i8>().wrapping_add(line)) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, len);
}
