//! [`Order`]: where the elements are, and where they go.

use super::key::Key;
use crate::memory::copy::Pointer;
use crate::number::scalar::Machine;

/// The elements, and the destinations of sorted elements and positions.
pub(super) struct Order<'a, T> {
    pub x: &'a [T],
    pub turn: u64,
    pub values: Pointer<T>,
    pub indices: Pointer<i64>,
}

impl<T: Machine> Order<'_, T> {
    /// A function that writes the element of a key to its place. The caller ensures that the place and the element
    /// exist.
    #[inline(always)]
    pub fn put<K: Key>(&self) -> impl Fn(usize, K) {
        let (x, turn, values, indices) = (self.x.as_ptr(), self.turn, self.values.get(), self.indices.get());
        move |place, key| {
            let position = key.position();
            // SAFETY: the caller's contract.
            unsafe {
                // Computing the element from its rank is faster than loading it from an arbitrary address.
                values.add(place).write(T::of_rank(key.rank() ^ turn).unwrap_or_else(|| *x.add(position)));
                indices.add(place).write(position as i64);
            }
        }
    }
}
