//! Loads and stores of blocks.

use super::body::Computed;
use super::sweep::{LANES, Lanes};
use crate::memory::stream::stream;

/// Copies a block to memory. Large results bypass the cache.
///
/// # Safety
/// There is room for `len` elements.
#[inline(always)]
pub unsafe fn put<T: Copy>(block: &Lanes<T>, place: *mut T, len: usize, is_large: bool) {
    // SAFETY: by contract.
    unsafe {
        match len {
            LANES if is_large => {
                // A copy, because an array that is read at a position known only at run time is not kept in registers.
                let block = *block;
                stream(block.as_ptr().cast(), place.cast(), size_of_val(&block))
            }
            LANES => *place.cast::<Lanes<T>>() = *block,
            _ => std::slice::from_raw_parts_mut(place, len).copy_from_slice(&block[..len]),
        }
    }
}

/// Copies `len` elements from memory.
///
/// # Safety
/// There are `len` elements.
#[inline(always)]
pub unsafe fn get<T: Computed>(place: *const T, len: usize) -> Lanes<T> {
    // SAFETY: by contract.
    unsafe {
        if len == LANES {
            return *place.cast();
        }
        let mut block = [T::ZERO; LANES];
        block.as_mut_ptr().copy_from_nonoverlapping(place, len);
        block
    }
}
