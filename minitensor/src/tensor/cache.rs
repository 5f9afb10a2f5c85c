//! A cache of large freed memory blocks, for reuse by later tensors: the system takes longer to map new pages than most
//! ops take to fill them.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

/// The smallest block that is cached, in bytes. The allocator handles smaller ones.
pub const LEAST: usize = 64 * 1024;
/// The maximum number of cached bytes.
const MOST: usize = 1 << 30;
/// Blocks that are unused for this long are freed.
const PATIENCE: Duration = Duration::from_secs(10);
/// The size of a huge page of the processor. Blocks of at least two huge pages are aligned to them.
const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;

struct Block {
    data: NonNull<u8>,
    since: Instant,
}

// SAFETY: the cache has the only pointer to a cached block.
unsafe impl Send for Block {}

#[derive(Default)]
struct FreeBlocks {
    /// The blocks by size. The last one of a list is the most recently used, and may still be in the processor's cache.
    blocks: BTreeMap<usize, Vec<Block>>,
    bytes: usize,
}

static FREE: Mutex<FreeBlocks> = Mutex::new(FreeBlocks { blocks: BTreeMap::new(), bytes: 0 });

/// Runs `f` on the cached blocks. `None` if another thread holds the lock: after a fork it may never be released.
fn with_free_blocks<R>(f: impl FnOnce(&mut FreeBlocks) -> R) -> Option<R> {
    match FREE.try_lock() {
        Ok(mut kept) => Some(f(&mut kept)),
        Err(TryLockError::Poisoned(kept)) => Some(f(&mut kept.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The size and alignment of a block for `bytes` bytes. Sizes are rounded up by at most an eighth or a page, so that tensors
/// of similar sizes can reuse a block.
fn layout(bytes: usize) -> Option<Layout> {
    let step = (bytes.checked_next_power_of_two()? / 16).max(PAGE);
    let size = bytes.checked_next_multiple_of(step)?;
    Layout::from_size_align(size, if size >= 2 * HUGE { HUGE } else { PAGE }).ok()
}

/// Allocates a block of at least `bytes` bytes, with unspecified content.
pub fn take(bytes: usize) -> Option<NonNull<u8>> {
    let layout = layout(bytes)?;
    let kept = with_free_blocks(|kept| {
        let block = kept.blocks.get_mut(&layout.size())?.pop()?;
        kept.bytes -= layout.size();
        Some(block.data)
    });
    if let Some(Some(data)) = kept {
        return Some(data);
    }
    fresh(layout).or_else(|| {
        empty();
        fresh(layout)
    })
}

fn fresh(layout: Layout) -> Option<NonNull<u8>> {
    // SAFETY: the size is not 0.
    let data = NonNull::new(unsafe { alloc(layout) })?;
    #[cfg(target_os = "linux")]
    if layout.align() == HUGE {
        // SAFETY: the block was allocated above with this size. The call is advice; its failure can be ignored.
        unsafe { libc::madvise(data.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
    Some(data)
}

/// Returns a block to the cache.
///
/// # Safety
/// The block comes from [`take`] for the same number of bytes, and is no longer used.
pub unsafe fn give(data: NonNull<u8>, bytes: usize) {
    let Some(layout) = layout(bytes) else { return };
    let now = Instant::now();
    let kept = with_free_blocks(|kept| {
        let old = now.checked_sub(PATIENCE).map(|before| kept.older_than(before)).unwrap_or_default();
        let fits = kept.bytes + layout.size() <= MOST;
        if fits {
            kept.bytes += layout.size();
            kept.blocks.entry(layout.size()).or_default().push(Block { data, since: now });
        }
        (old, fits)
    });
    let (old, fits) = kept.unwrap_or_default();
    // SAFETY: the blocks have these sizes, and are no longer used.
    unsafe {
        old.into_iter().for_each(|(block, size)| free(block.data, size));
        if !fits {
            free(data, layout.size());
        }
    }
}

impl FreeBlocks {
    /// Removes the blocks that were returned before this time.
    fn older_than(&mut self, before: Instant) -> Vec<(Block, usize)> {
        let mut old = Vec::new();
        for (size, blocks) in &mut self.blocks {
            let count = blocks.iter().take_while(|b| b.since < before).count();
            old.extend(blocks.drain(..count).map(|b| (b, *size)));
            self.bytes -= count * size;
        }
        old
    }
}

/// # Safety
/// The block has this size, which [`layout`] returned, and is no longer used.
unsafe fn free(data: NonNull<u8>, size: usize) {
    if let Some(layout) = layout(size) {
        // SAFETY: for a size that `layout` returned, `layout` returns the layout that the block was allocated with.
        unsafe { dealloc(data.as_ptr(), layout) }
    }
}

/// The number of cached bytes.
pub fn kept_bytes() -> usize {
    with_free_blocks(|kept| kept.bytes).unwrap_or(0)
}

/// Frees all cached blocks.
pub fn empty() {
    let all = with_free_blocks(std::mem::take).unwrap_or_default();
    for (size, blocks) in all.blocks {
        // SAFETY: the blocks have this size, and are no longer used.
        blocks.into_iter().for_each(|block| unsafe { free(block.data, size) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_its_own_class_and_wastes_little() {
        for bytes in (LEAST..8 * HUGE).step_by(7_777).chain([usize::MAX / 64]) {
            let size = layout(bytes).map(|l| l.size()).unwrap();
            assert!(size >= bytes && size <= bytes + bytes / 8 + PAGE, "{bytes} {size}");
            assert_eq!(layout(size), layout(bytes));
        }
        assert_eq!(layout(usize::MAX), None);
    }

    #[test]
    fn old_blocks_are_taken_out() {
        let mut kept = FreeBlocks::default();
        let start = Instant::now();
        for (k, size) in [LEAST, LEAST, 2 * LEAST].into_iter().enumerate() {
            let block = Block { data: NonNull::dangling(), since: start + Duration::from_secs(k as u64) };
            kept.blocks.entry(size).or_default().push(block);
            kept.bytes += size;
        }
        assert_eq!(kept.older_than(start + Duration::from_millis(500)).len(), 1);
        assert_eq!(kept.bytes, 3 * LEAST);
        assert_eq!(kept.older_than(start + Duration::from_secs(9)).len(), 2);
        assert_eq!(kept.bytes, 0);
    }
}
