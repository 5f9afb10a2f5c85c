//! Radix sort of keys by the bits in which their ranks differ.

use std::collections::TryReserveError;

use super::key::Key;
use super::order::Order;
use crate::memory::copy::Pointer;
use crate::number::scalar::Machine;
use crate::runtime::threads::parallel_for;

/// Above this number, keys are sorted on several threads.
pub(super) const MANY: usize = 64 * 1024;
/// The number of parts of many keys. The places of each part are counted separately.
const PARTS: usize = 16;
/// The maximum number of bits in a digit.
const DIGIT_BITS: u32 = 8;
/// The number of keys whose places are looked up before the first of them is moved. A load waits until the addresses of
/// all stores before it are known, and the address of a key's store is known only after a load. One by one, each key
/// would wait for the previous one.
const TOGETHER: usize = 8;

/// Some consecutive bits of a rank.
#[derive(Clone, Copy)]
struct Digit {
    shift: u32,
    bits: u32,
}

impl Digit {
    /// An even number of digits that cover the bits in which ranks differ, the lowest first.
    fn all(differing: u64) -> impl Iterator<Item = [Digit; 2]> {
        let end = u64::BITS - differing.leading_zeros();
        let start = differing.trailing_zeros().min(end);
        let pairs = (end - start).div_ceil(2 * DIGIT_BITS).max(1);
        let bits = (end - start).div_ceil(2 * pairs);
        // The last digit may be above all bits. Its shift is limited to the highest bit; sorting by that again changes
        // nothing.
        let digit = move |d: u32| Digit { shift: (start + d * bits).min(u64::BITS - 1), bits };
        (0..pairs).map(move |pair| [digit(2 * pair), digit(2 * pair + 1)])
    }

    /// The number of values of the digit.
    fn values(self) -> usize {
        1 << self.bits
    }

    #[inline(always)]
    fn of<K: Key>(self, key: K) -> usize {
        (key.rank() >> self.shift) as usize & (self.values() - 1)
    }
}

/// Sorts by one digit after the other: counting the keys with each value yields the place where the keys of each value
/// begin, then the keys are moved there. The low digit of a pair moves them to spare memory and the high digit moves
/// them back. The last digit writes the elements in order instead.
pub(super) fn sort_by_digits<T: Machine, K: Key>(
    order: &Order<T>,
    keys: &Pointer<K>,
    differing: u64,
) -> Result<(), TryReserveError> {
    let n = order.x.len();
    let mut spare = Vec::<K>::new();
    spare.try_reserve_exact(n)?;
    let spare = Pointer(spare.as_mut_ptr());
    let parts = if n <= MANY { 1 } else { PARTS };
    // For each part and value, first the number of keys, then the place of the next key. For both digits of a pair.
    let mut places = [Vec::new(), Vec::new()];
    let mut pairs = Digit::all(differing).peekable();
    while let Some([low, high]) = pairs.next() {
        let values = low.values();
        for places in &mut places {
            places.clear();
            places.try_reserve_exact(parts * values)?;
            places.resize(parts * values, 0);
        }
        let [low_places, high_places] = &mut places;
        let round = |from: &Pointer<K>, places: &mut [usize], work: &(dyn Fn(&[K], &mut [usize]) + Sync)| {
            let places = Pointer(places.as_mut_ptr());
            parallel_for(parts, 1, |range| {
                for part in range {
                    let (start, end) = (part * n / parts, (part + 1) * n / parts);
                    // SAFETY: all keys were written, and only this call accesses the places of this part.
                    unsafe {
                        let keys = std::slice::from_raw_parts(from.get().add(start), end - start);
                        work(keys, std::slice::from_raw_parts_mut(places.get().add(part * values), values));
                    }
                }
            });
        };
        let add_up = |places: &mut [usize]| {
            let mut next = 0;
            if parts == 1 {
                return places.iter_mut().for_each(|place| next += std::mem::replace(place, next));
            }
            for v in 0..values {
                for p in 0..parts {
                    next += std::mem::replace(&mut places[p * values + v], next);
                }
            }
        };
        if parts == 1 {
            // SAFETY: all keys were written. The counts of the high digits don't depend on the order of the keys.
            count_both(unsafe { std::slice::from_raw_parts(keys.get(), n) }, [low, high], low_places, high_places);
        } else {
            round(keys, low_places, &|keys, counts| count(keys, low, counts));
        }
        add_up(low_places);
        // SAFETY: the places of all parts and values are disjoint, and their number is the number of keys.
        round(keys, low_places, &|keys, places| unsafe {
            let to = spare.get();
            distribute(keys, low, places, |place, key| to.add(place).write(key));
        });
        if parts > 1 {
            round(&spare, high_places, &|keys, counts| count(keys, high, counts));
        }
        add_up(high_places);
        let last = pairs.peek().is_none();
        // SAFETY: as above.
        round(&spare, high_places, &|part, places| unsafe {
            if last {
                distribute(part, high, places, order.put());
            } else {
                let to = keys.get();
                distribute(part, high, places, |place, key| to.add(place).write(key));
            }
        });
    }
    Ok(())
}

/// Counts the keys that have each value.
fn count<K: Key>(keys: &[K], digit: Digit, counts: &mut [usize]) {
    keys.iter().for_each(|key| counts[digit.of(*key)] += 1);
}

/// Counts two digits at once, which is faster than one after the other.
fn count_both<K: Key>(keys: &[K], [low, high]: [Digit; 2], low_counts: &mut [usize], high_counts: &mut [usize]) {
    for key in keys {
        low_counts[low.of(*key)] += 1;
        high_counts[high.of(*key)] += 1;
    }
}

/// Moves every key to the next place for its value.
///
/// # Safety
/// There is a place for every value.
#[inline(always)]
unsafe fn distribute<K: Key>(keys: &[K], digit: Digit, places: &mut [usize], put: impl Fn(usize, K)) {
    let (groups, rest) = keys.as_chunks::<TOGETHER>();
    for group in groups {
        let group = *group;
        let mut found = [0; TOGETHER];
        for (found, key) in found.iter_mut().zip(group) {
            // SAFETY: by contract.
            let place = unsafe { places.get_unchecked_mut(digit.of(key)) };
            *found = *place;
            *place += 1;
        }
        found.into_iter().zip(group).for_each(|(place, key)| put(place, key));
    }
    for key in rest {
        let place = &mut places[digit.of(*key)];
        put(*place, *key);
        *place += 1;
    }
}
