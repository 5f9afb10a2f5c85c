//! Large blocks of memory that were given back and are kept for the next tensor: the system takes longer to map fresh
//! pages than most ops take to fill them.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

/// Smaller blocks are the allocator's.
pub const LEAST: usize = 64 * 1024;
/// No more bytes than this are kept.
const MOST: usize = 1 << 30;
/// Blocks that nobody wanted for so long go back to the system.
const PATIENCE: Duration = Duration::from_secs(10);
/// Blocks of at least two of the processor's large pages lie on such pages.
const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;

struct Block {
    data: NonNull<u8>,
    since: Instant,
}

// SAFETY: nobody else knows of a block that is kept.
unsafe impl Send for Block {}

#[derive(Default)]
struct Kept {
    /// By size; the last one of a list was used last, and may be in the processor's cache.
    blocks: BTreeMap<usize, Vec<Block>>,
    bytes: usize,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept { blocks: BTreeMap::new(), bytes: 0 });

/// Works on what is kept; not at all where another thread does, which after a fork may be for ever.
fn with_kept<R>(f: impl FnOnce(&mut Kept) -> R) -> Option<R> {
    match KEPT.try_lock() {
        Ok(mut kept) => Some(f(&mut kept)),
        Err(TryLockError::Poisoned(kept)) => Some(f(&mut kept.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// How large and how aligned a block for so many bytes is: sizes come in steps of an eighth, so that a block fits many
/// tensors.
fn layout(bytes: usize) -> Option<Layout> {
    let step = (bytes.checked_next_power_of_two()? / 16).max(PAGE);
    let size = bytes.checked_next_multiple_of(step)?;
    Layout::from_size_align(size, if size >= 2 * HUGE { HUGE } else { PAGE }).ok()
}

/// A block of at least so many bytes, with any content.
pub fn take(bytes: usize) -> Option<NonNull<u8>> {
    let layout = layout(bytes)?;
    let kept = with_kept(|kept| {
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
    // SAFETY: the size isn't 0.
    let data = NonNull::new(unsafe { alloc(layout) })?;
    #[cfg(target_os = "linux")]
    if layout.align() == HUGE {
        // SAFETY: the block is ours. It's advice: that it is refused does no harm.
        unsafe { libc::madvise(data.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
    Some(data)
}

/// Takes a block back.
///
/// # Safety
/// It came from [`take`] for as many bytes, and nobody uses it any more.
pub unsafe fn give(data: NonNull<u8>, bytes: usize) {
    let Some(layout) = layout(bytes) else { return };
    let now = Instant::now();
    let kept = with_kept(|kept| {
        let old = now.checked_sub(PATIENCE).map(|before| kept.older_than(before)).unwrap_or_default();
        let fits = kept.bytes + layout.size() <= MOST;
        if fits {
            kept.bytes += layout.size();
            kept.blocks.entry(layout.size()).or_default().push(Block { data, since: now });
        }
        (old, fits)
    });
    let (old, fits) = kept.unwrap_or_default();
    // SAFETY: blocks of these sizes, which nobody uses.
    unsafe {
        old.into_iter().for_each(|(block, size)| free(block.data, size));
        if !fits {
            free(data, layout.size());
        }
    }
}

impl Kept {
    /// Takes out the blocks that were given back before.
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
/// The block has this size, which came from [`layout`], and nobody uses it.
unsafe fn free(data: NonNull<u8>, size: usize) {
    if let Some(layout) = layout(size) {
        // SAFETY: a size that came from `layout` gives the layout that the block was made with.
        unsafe { dealloc(data.as_ptr(), layout) }
    }
}

/// How many bytes are kept.
pub fn kept_bytes() -> usize {
    with_kept(|kept| kept.bytes).unwrap_or(0)
}

/// Gives all that is kept back to the system.
pub fn empty() {
    let all = with_kept(std::mem::take).unwrap_or_default();
    for (size, blocks) in all.blocks {
        // SAFETY: blocks of that size, which nobody uses.
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
        let mut kept = Kept::default();
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
