//! Sorting by [rank](Machine::rank), and selection of the first elements of an order.
//!
//! Ranks are sorted together with the positions of their elements, so no two keys are equal: every algorithm gives the
//! same result, and equal elements keep their order. Many keys are sorted by radix sort, few by comparison.

use std::collections::TryReserveError;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::copy::Pointer;
use crate::number::scalar::Machine;
use crate::runtime::simd::clones;
use crate::runtime::threads::parallel_for;

/// Below this number, keys are sorted by comparison.
const FEW: usize = 192;
/// Above this number, keys are sorted on several threads.
const MANY: usize = 64 * 1024;
/// The number of keys that one thread creates at a time, or searches for the first ones of the order.
const GRAIN: usize = 32 * 1024;
/// The number of parts of many keys. The places of each part are counted separately.
const PARTS: usize = 16;
/// The maximum number of bits in a digit.
const DIGIT_BITS: u32 = 8;
/// The number of keys whose places are looked up before the first of them is moved. A load waits until the addresses of
/// all stores before it are known, and the address of a key's store is known only after a load. One by one, each key
/// would wait for the previous one.
const TOGETHER: usize = 8;

/// A key: a rank in the high bits, a position in the low bits.
trait Key: Copy + Ord + Default + Send + Sync {
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
fn is_short<T: Machine>(n: usize) -> bool {
    T::RANK_BITS <= 32 && u32::try_from(n).is_ok()
}

fn buffer<A: Copy + Default>(n: usize) -> Result<Vec<A>, TryReserveError> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(n)?;
    buffer.resize(n, A::default());
    Ok(buffer)
}

/// The bits to flip in ranks so that they sort in the requested order: none, or all for descending order. Equal
/// elements keep their order.
fn turn<T: Machine>(descending: bool) -> u64 {
    if descending { u64::MAX.checked_shr(u64::BITS - T::RANK_BITS).unwrap_or(0) } else { 0 }
}

clones! {
    /// Writes the keys of elements; `start` is the position of the first one. Returns the bits in which their ranks
    /// differ from that of `other`.
    <[T, K]> fn fill(x: &[T], turn: u64, start: usize, other: T, keys: &mut [MaybeUninit<K>]) -> u64
    where [T: Machine, K: Key] if [T::VECTORIZE] {
        let mut differing = 0;
        for (i, (key, v)) in keys.iter_mut().zip(x).enumerate() {
            differing |= v.rank() ^ other.rank();
            *key = MaybeUninit::new(K::new(v.rank() ^ turn, start + i));
        }
        differing
    }
}

/// The elements, and the destinations of sorted elements and positions.
struct Order<'a, T> {
    x: &'a [T],
    turn: u64,
    values: Pointer<T>,
    indices: Pointer<i64>,
}

impl<T: Machine> Order<'_, T> {
    /// A function that writes the element of a key to its place. The caller ensures that the place and the element
    /// exist.
    #[inline(always)]
    fn put<K: Key>(&self) -> impl Fn(usize, K) {
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

/// Sorts the elements and returns their original positions. NaN comes last, or first in descending order.
///
/// # Panics
/// If the lengths differ.
pub fn sort<T: Machine>(
    x: &[T],
    descending: bool,
    values: &mut [T],
    indices: &mut [i64],
) -> Result<(), TryReserveError> {
    assert!(x.len() == values.len() && x.len() == indices.len(), "one place for each element");
    let (values, indices) = (Pointer(values.as_mut_ptr()), Pointer(indices.as_mut_ptr()));
    let order = Order { x, turn: turn::<T>(descending), values, indices };
    if is_short::<T>(x.len()) {
        // Keys of 64 bits are stored in the memory of the indices.
        let keys = Pointer(order.indices.get().cast::<u64>());
        sort_by_keys(order, keys)
    } else {
        let mut keys = Vec::<u128>::new();
        keys.try_reserve_exact(x.len())?;
        sort_by_keys(order, Pointer(keys.as_mut_ptr()))
    }
}

/// Sorts with a buffer that has room for one key per element. It may be the memory of the indices.
fn sort_by_keys<T: Machine, K: Key>(order: Order<T>, keys: Pointer<K>) -> Result<(), TryReserveError> {
    let (x, n) = (order.x, order.x.len());
    let Some(other) = x.first().copied() else { return Ok(()) };
    let differing = AtomicU64::new(0);
    parallel_for(n, GRAIN, |range| {
        // SAFETY: the range is within the keys, and no other call writes there.
        let keys = unsafe {
            std::slice::from_raw_parts_mut(keys.get().add(range.start).cast::<MaybeUninit<K>>(), range.len())
        };
        differing.fetch_or(fill(&x[range.clone()], order.turn, range.start, other, keys), Ordering::Relaxed);
    });
    if n > FEW {
        return sort_by_digits(&order, &keys, differing.into_inner());
    }
    // SAFETY: all keys were written.
    unsafe { std::slice::from_raw_parts_mut(keys.get(), n) }.sort_unstable();
    let put = order.put();
    for place in 0..n {
        // SAFETY: these are the keys of the elements, and each is read before an index replaces it.
        put(place, unsafe { keys.get().add(place).read() });
    }
    Ok(())
}

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
fn sort_by_digits<T: Machine, K: Key>(
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

fn write<T: Machine, K: Key>(x: &[T], keys: &[K], values: &mut [T], indices: &mut [i64]) {
    for ((key, v), i) in keys.iter().zip(values).zip(indices) {
        *v = x[key.position()];
        *i = key.position() as i64;
    }
}

/// Appends the keys of elements; `start` is the position of the first one.
fn push_keys<T: Machine, K: Key>(x: &[T], descending: bool, start: usize, keys: &mut Vec<K>) {
    keys.reserve(x.len());
    fill(x, turn::<T>(descending), start, T::default(), &mut keys.spare_capacity_mut()[..x.len()]);
    // SAFETY: there was room for them, and all of them were written.
    unsafe { keys.set_len(keys.len() + x.len()) };
}

/// The first elements of the [order](sort), one for each place, and their original positions.
///
/// # Panics
/// If there are more places than elements.
pub fn first<T: Machine>(
    x: &[T],
    descending: bool,
    values: &mut [T],
    indices: &mut [i64],
) -> Result<(), TryReserveError> {
    assert!(values.len() <= x.len() && values.len() == indices.len(), "no more places than elements");
    let mut keys_then_write = |short: bool| -> Result<(), TryReserveError> {
        if short {
            write(x, &first_keys::<T, u64>(x, descending, values.len())?, values, indices);
        } else {
            write(x, &first_keys::<T, u128>(x, descending, values.len())?, values, indices);
        }
        Ok(())
    };
    keys_then_write(is_short::<T>(x.len()))
}

/// The `k` least keys in order.
fn first_keys<T: Machine, K: Key>(x: &[T], descending: bool, k: usize) -> Result<Vec<K>, TryReserveError> {
    if k == 0 {
        return Ok(Vec::new());
    }
    let mut keys = if x.len() > 2 * GRAIN && k <= GRAIN / 4 {
        // Only the first keys of each part can be among the first keys.
        let parts = x.len().div_ceil(GRAIN);
        let mut found = buffer::<K>(parts * k)?;
        let to = Pointer(found.as_mut_ptr());
        parallel_for(parts, 1, |range| {
            for p in range {
                let x = &x[p * GRAIN..x.len().min((p + 1) * GRAIN)];
                let mut keys = Vec::new();
                push_keys(x, descending, p * GRAIN, &mut keys);
                least(&mut keys, k);
                // The last part may have fewer keys: pad with the greatest possible key.
                keys.resize(k, K::new(u64::MAX >> if size_of::<K>() == 8 { 32 } else { 0 }, usize::MAX));
                // SAFETY: these are the places of part p, and no other call writes to them.
                unsafe { to.get().add(p * k).copy_from_nonoverlapping(keys.as_ptr(), k) };
            }
        });
        found
    } else {
        let mut keys = Vec::new();
        keys.try_reserve_exact(x.len())?;
        push_keys(x, descending, 0, &mut keys);
        keys
    };
    least(&mut keys, k);
    keys.sort_unstable();
    Ok(keys)
}

/// Keeps the `k` least keys, in any order; all of them if there are fewer.
fn least<K: Key>(keys: &mut Vec<K>, k: usize) {
    let lanes = (2 * k).max(32);
    if keys.len() >= 8 * lanes {
        // Take the least key of each lane. At least k keys are not above the k-th of these, so it is a bound.
        let mut bests = keys[..lanes].to_vec();
        lane_bests(&keys[lanes..], &mut bests);
        let bound = *bests.select_nth_unstable(k - 1).1;
        let mut kept = 0;
        for i in 0..keys.len() {
            let key = keys[i];
            keys[kept] = key;
            kept += usize::from(key <= bound);
        }
        keys.truncate(kept);
    }
    if keys.len() > k {
        keys.select_nth_unstable(k - 1);
        keys.truncate(k);
    }
}

clones! {
    /// The least key of each lane.
    <[K]> fn lane_bests(keys: &[K], bests: &mut [K]) where [K: Key] {
        for row in keys.chunks(bests.len()) {
            for (best, key) in bests.iter_mut().zip(row) {
                *best = if *key < *best { *key } else { *best };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::scalar::{Real, lit};

    /// Numbers with ties, zeros of both signs and NaN, where the type has them.
    fn numbers<T: Machine + Real>(n: usize, values: u64) -> Vec<T> {
        let mut seed = 0x2545_F491_4F6C_DD1Du64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed >> 11
        };
        (0..n)
            .map(|_| match next() % 50 {
                0 => lit(f64::NAN),
                1 => lit(-0.0),
                2 => lit(f64::INFINITY),
                3 => lit(f64::NEG_INFINITY),
                _ => lit::<T>((next() % values) as f64 / 3.0) - lit(values as f64 / 6.0),
            })
            .collect()
    }

    fn check<T: Machine + Real + PartialOrd>() {
        for (n, values) in [(0, 9), (1, 9), (100, 20), (1000, 7), (5000, 1 << 40), (3 * MANY, 1 << 40), (2 * MANY, 100)]
        {
            let x = numbers::<T>(n, values);
            for descending in [false, true] {
                let mut order: Vec<usize> = (0..n).collect();
                let compare = |a: T, b: T| a.partial_cmp(&b).unwrap_or_else(|| a.isnan().cmp(&b.isnan()));
                order.sort_by(|a, b| if descending { compare(x[*b], x[*a]) } else { compare(x[*a], x[*b]) });
                let order: Vec<i64> = order.into_iter().map(|i| i as i64).collect();
                let (mut values, mut indices) = (vec![T::zero(); n], vec![0; n]);
                sort(&x, descending, &mut values, &mut indices).expect("memory");
                assert!(indices == order, "{n} {values:?}");
                let same = |(v, i): (&T, &i64)| *v == x[*i as usize] || v.isnan() && x[*i as usize].isnan();
                assert!(values.iter().zip(&order).all(same));
                for k in [0, 1, 16, 300, n / 2, n].into_iter().filter(|k| *k <= n) {
                    let (mut values, mut indices) = (vec![T::zero(); k], vec![0; k]);
                    first(&x, descending, &mut values, &mut indices).expect("memory");
                    assert!(indices == order[..k], "{k} of {n}");
                    assert!(values.iter().zip(&order).all(same));
                }
            }
        }
    }

    #[test]
    fn every_type_is_sorted_as_by_comparison() {
        check::<f32>();
        check::<f64>();
        check::<i8>();
        check::<i16>();
        check::<i32>();
        check::<i64>();
        check::<u8>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
    }

    #[test]
    fn zeros_keep_their_signs_and_their_order() {
        for n in [100, 1000, 2 * MANY] {
            let x: Vec<f32> = (0..n).map(|i| if i % 3 == 0 { -0.0 } else { (i % 2) as f32 }).collect();
            let (mut values, mut indices) = (vec![1.0; n], vec![0; n]);
            sort(&x, false, &mut values, &mut indices).expect("memory");
            assert!(values.iter().zip(&indices).all(|(v, i)| v.to_bits() == x[*i as usize].to_bits()));
            let zeros = x.iter().filter(|v| **v == 0.0).count();
            assert!(indices[..zeros].is_sorted() && indices[zeros..].is_sorted());
        }
    }
}
