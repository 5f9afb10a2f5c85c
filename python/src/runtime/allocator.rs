//! [`Allocator`]: the global allocator of the extension module.

use std::alloc::{GlobalAlloc, Layout, System};

use mimalloc::MiMalloc;

/// A call allocates and frees small objects, which takes few instructions with mimalloc. Large blocks come from the
/// system allocator, because it reports when memory is exhausted.
pub struct Allocator;

/// In bytes.
const LARGE: usize = 64 * 1024;

#[inline(always)]
fn is_small(size: usize) -> bool {
    size < LARGE
}

// SAFETY: every block is freed by the allocator that it came from, which its size determines.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { if is_small(layout.size()) { MiMalloc.alloc(layout) } else { System.alloc(layout) } }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { if is_small(layout.size()) { MiMalloc.alloc_zeroed(layout) } else { System.alloc_zeroed(layout) } }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { if is_small(layout.size()) { MiMalloc.dealloc(block, layout) } else { System.dealloc(block, layout) } }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract; a block that changes its allocator is copied.
        unsafe {
            match (is_small(layout.size()), is_small(size)) {
                (true, true) => MiMalloc.realloc(block, layout, size),
                (false, false) => System.realloc(block, layout, size),
                _ => {
                    let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}
