//! [`Key`]: a rank and a position, which algorithms compare and move instead of elements.

use std::mem::MaybeUninit;

use crate::number::scalar::Machine;
use crate::runtime::simd::clones;

/// The number of keys that one thread creates at a time, or searches for the first ones of the order.
pub(super) const GRAIN: usize = 32 * 1024;

/// A key: a rank in the high bits, a position in the low bits.
pub(super) trait Key: Copy + Ord + Default + Send + Sync {
    fn new(rank: u64, position: usize) -> Self;
    fn rank(self) -> u64;
    fn position(self) -> usize;
}

/// Ranks and positions of 32 bits.
impl Key for u64 {
    #[inline(always)]
    fn new(rank: u64, position: usize) -> u64 {
        rank << 32 | position as u64
    }
    #[inline(always)]
    fn rank(self) -> u64 {
        self >> 32
    }
    #[inline(always)]
    fn position(self) -> usize {
        self as u32 as usize
    }
}

/// Ranks and positions of 64 bits.
impl Key for u128 {
    #[inline(always)]
    fn new(rank: u64, position: usize) -> u128 {
        u128::from(rank) << 64 | position as u128
    }
    #[inline(always)]
    fn rank(self) -> u64 {
        (self >> 64) as u64
    }
    #[inline(always)]
    fn position(self) -> usize {
        self as usize
    }
}

/// True if keys of 64 bits hold the ranks and positions of `n` elements.
pub(super) fn is_short<T: Machine>(n: usize) -> bool {
    T::RANK_BITS <= 32 && u32::try_from(n).is_ok()
}

/// The bits to flip in ranks so that they sort in the requested order: none, or all for descending order. Equal
/// elements keep their order.
pub(super) fn turn<T: Machine>(descending: bool) -> u64 {
    if descending { u64::MAX.checked_shr(u64::BITS - T::RANK_BITS).unwrap_or(0) } else { 0 }
}

clones! {
    /// Writes the keys of elements; `start` is the position of the first one. Returns the bits in which their ranks
    /// differ from that of `other`.
    pub(super) <[T, K]> fn fill(x: &[T], turn: u64, start: usize, other: T, keys: &mut [MaybeUninit<K>]) -> u64
    where [T: Machine, K: Key] if [T::VECTORIZE] {
        let mut differing = 0;
        for (i, (key, v)) in keys.iter_mut().zip(x).enumerate() {
            differing |= v.rank() ^ other.rank();
            *key = MaybeUninit::new(K::new(v.rank() ^ turn, start + i));
        }
        differing
    }
}

/// Appends the keys of elements; `start` is the position of the first one.
pub(super) fn push_keys<T: Machine, K: Key>(x: &[T], descending: bool, start: usize, keys: &mut Vec<K>) {
    keys.reserve(x.len());
    fill(x, turn::<T>(descending), start, T::default(), &mut keys.spare_capacity_mut()[..x.len()]);
    // SAFETY: there was room for them, and all of them were written.
    unsafe { keys.set_len(keys.len() + x.len()) };
}
