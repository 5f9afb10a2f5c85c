//! Order: sorting by [rank](Machine::rank), and the first of an order.
//!
//! Ranks are sorted together with the positions of their elements, so no two keys are equal: every way of sorting gives
//! the same result, and equal elements keep their order. Many keys are sorted by their digits, few by comparison.

use std::collections::TryReserveError;
use std::ops::Range;

use crate::copy::Pointer;
use crate::scalar::Machine;
use crate::simd::clones;
use crate::threads::parallel_for;

/// Fewer keys are sorted by comparison.
const FEW: usize = 192;
/// More keys are first dealt into buckets, which several threads sort.
const MANY: usize = 64 * 1024;
/// Keys that one thread deals at a time, or looks through for the first of the order.
const GRAIN: usize = 32 * 1024;
/// Bits of a rank that say which bucket it is dealt to.
const BUCKET_BITS: u32 = 10;
/// The values of a digit, which has eight bits.
const VALUES: usize = 256;

/// A rank above a position.
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

/// Whether keys of 64 bits hold the ranks and positions of so many elements.
fn is_short<T: Machine>(n: usize) -> bool {
    T::RANK_BITS <= 32 && u32::try_from(n).is_ok()
}

fn buffer<A: Copy + Default>(n: usize) -> Result<Vec<A>, TryReserveError> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(n)?;
    buffer.resize(n, A::default());
    Ok(buffer)
}

clones! {
    /// The keys of the elements, of which the first one stands at `start`.
    <[T, K]> fn fill(x: &[T], descending: bool, start: usize, keys: &mut [K])
    where [T: Machine, K: Key] if [T::VECTORIZE] {
        // The ranks of the reverse order: equal elements still keep theirs.
        let turn = if descending { u64::MAX.checked_shr(64 - T::RANK_BITS).unwrap_or(0) } else { 0 };
        for (i, (key, v)) in keys.iter_mut().zip(x).enumerate() {
            *key = K::new(v.rank() ^ turn, start + i);
        }
    }
}

/// The elements in order, and where they stood; NaN comes last, or first when descending.
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
    if is_short::<T>(x.len()) {
        sort_by_keys::<T, u64>(x, descending, values, indices)
    } else {
        sort_by_keys::<T, u128>(x, descending, values, indices)
    }
}

fn sort_by_keys<T: Machine, K: Key>(
    x: &[T],
    descending: bool,
    values: &mut [T],
    indices: &mut [i64],
) -> Result<(), TryReserveError> {
    let mut keys = buffer::<K>(x.len())?;
    if x.len() <= FEW {
        fill(x, descending, 0, &mut keys);
        keys.sort_unstable();
        write(x, &keys, values, indices);
        return Ok(());
    }
    let mut spare = buffer::<K>(x.len())?;
    if x.len() <= MANY {
        fill(x, descending, 0, &mut keys);
        sort_by_digits(&mut keys, &mut spare, T::RANK_BITS);
        write(x, &keys, values, indices);
        return Ok(());
    }
    let to = Pointer(keys.as_mut_ptr());
    parallel_for(x.len(), GRAIN, |range| {
        // SAFETY: the range lies within the keys, and no other call writes there.
        let keys = unsafe { std::slice::from_raw_parts_mut(to.get().add(range.start), range.len()) };
        fill(&x[range.clone()], descending, range.start, keys);
    });
    let buckets = deal(&keys, &mut spare)?;
    let (dealt, free) = (Pointer(spare.as_mut_ptr()), Pointer(keys.as_mut_ptr()));
    let (values, indices) = (Pointer(values.as_mut_ptr()), Pointer(indices.as_mut_ptr()));
    parallel_for(buckets.len(), 1, |range| {
        for Range { start, end } in buckets[range].iter().cloned() {
            // SAFETY: the buckets lie within all four slices and don't overlap, and each is given to one call.
            unsafe {
                let dealt = std::slice::from_raw_parts_mut(dealt.get().add(start), end - start);
                let free = std::slice::from_raw_parts_mut(free.get().add(start), end - start);
                sort_by_digits(dealt, free, T::RANK_BITS);
                let values = std::slice::from_raw_parts_mut(values.get().add(start), end - start);
                let indices = std::slice::from_raw_parts_mut(indices.get().add(start), end - start);
                write(x, dealt, values, indices);
            }
        }
    });
    Ok(())
}

fn write<T: Machine, K: Key>(x: &[T], keys: &[K], values: &mut [T], indices: &mut [i64]) {
    for ((key, v), i) in keys.iter().zip(values).zip(indices) {
        *v = x[key.position()];
        *i = key.position() as i64;
    }
}

/// Sorts by one digit after the other, the lowest first. `bits` are those of a rank; `spare` is as long as the keys.
fn sort_by_digits<K: Key>(keys: &mut [K], spare: &mut [K], bits: u32) {
    if keys.len() <= FEW {
        return keys.sort_unstable();
    }
    let digit = |key: K, d: usize| (key.rank() >> (8 * d)) as usize % VALUES;
    let digits = bits.div_ceil(8) as usize;
    let mut counts = [[0usize; VALUES]; 8];
    for key in keys.iter() {
        for (d, counts) in counts[..digits].iter_mut().enumerate() {
            counts[digit(*key, d)] += 1;
        }
    }
    let n = keys.len();
    let (mut from, mut to) = (&mut *keys, &mut *spare);
    let mut moves = 0;
    for (d, counts) in counts[..digits].iter_mut().enumerate() {
        if counts[digit(from[0], d)] == n {
            continue;
        }
        let mut next = 0;
        for count in counts.iter_mut() {
            next += std::mem::replace(count, next);
        }
        for key in from.iter() {
            let place = &mut counts[digit(*key, d)];
            // SAFETY: the counts of all values add up to the number of keys, and this is below.
            unsafe { *to.get_unchecked_mut(*place) = *key };
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        moves += 1;
    }
    if moves % 2 == 1 {
        keys.copy_from_slice(spare);
    }
}

/// Deals keys into buckets by the highest bits that differ, in their order, and says where the buckets are.
fn deal<K: Key>(keys: &[K], dealt: &mut [K]) -> Result<Vec<Range<usize>>, TryReserveError> {
    let (least, most) =
        keys.iter().fold((u64::MAX, 0), |(least, most), key| (least.min(key.rank()), most.max(key.rank())));
    let shift = (u64::BITS - (most - least).leading_zeros()).saturating_sub(BUCKET_BITS);
    let bucket = |key: K| ((key.rank() - least) >> shift) as usize;
    let count = 1 << BUCKET_BITS;
    let parts = keys.len().div_ceil(GRAIN);
    let part = |p: usize| &keys[p * GRAIN..keys.len().min((p + 1) * GRAIN)];
    // How many keys of a part fall into a bucket; then, where the next of them goes.
    let mut places = buffer::<usize>(parts * count)?;
    let all = Pointer(places.as_mut_ptr());
    // SAFETY: the places of part p, which one call at a time asks for.
    let places_of = |p: usize| unsafe { std::slice::from_raw_parts_mut(all.get().add(p * count), count) };
    parallel_for(parts, 1, |range| {
        for p in range {
            let places = places_of(p);
            part(p).iter().for_each(|key| places[bucket(*key)] += 1);
        }
    });
    let mut buckets = Vec::new();
    buckets.try_reserve_exact(count)?;
    let mut next = 0;
    for b in 0..count {
        let start = next;
        for p in 0..parts {
            next += std::mem::replace(&mut places_of(p)[b], next);
        }
        if next > start {
            buckets.push(start..next);
        }
    }
    let to = Pointer(dealt.as_mut_ptr());
    parallel_for(parts, 1, |range| {
        for p in range {
            let places = places_of(p);
            for key in part(p) {
                let place = &mut places[bucket(*key)];
                // SAFETY: the places of all parts and buckets are apart, and together as many as there are keys.
                unsafe { to.get().add(*place).write(*key) };
                *place += 1;
            }
        }
    });
    Ok(buckets)
}

/// The first of the [order](sort), as many as there are places for them, and where they stood.
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
        // The first ones of every part are all that can be the first ones.
        let parts = x.len().div_ceil(GRAIN);
        let mut found = buffer::<K>(parts * k)?;
        let to = Pointer(found.as_mut_ptr());
        parallel_for(parts, 1, |range| {
            for p in range {
                let x = &x[p * GRAIN..x.len().min((p + 1) * GRAIN)];
                let mut keys = vec![K::default(); x.len()];
                fill(x, descending, p * GRAIN, &mut keys);
                least(&mut keys, k);
                // The last part may have fewer: the greatest of all keys stand for those.
                keys.resize(k, K::new(u64::MAX >> if size_of::<K>() == 8 { 32 } else { 0 }, usize::MAX));
                // SAFETY: the places of part p, to which no other call writes.
                unsafe { to.get().add(p * k).copy_from_nonoverlapping(keys.as_ptr(), k) };
            }
        });
        found
    } else {
        let mut keys = buffer::<K>(x.len())?;
        fill(x, descending, 0, &mut keys);
        keys
    };
    least(&mut keys, k);
    keys.sort_unstable();
    Ok(keys)
}

/// Leaves the `k` least keys, in any order; all, if they are fewer.
fn least<K: Key>(keys: &mut Vec<K>, k: usize) {
    let lanes = (2 * k).max(32);
    if keys.len() >= 8 * lanes {
        // Of the least keys of so many lanes, the k-th one is a bound that at least k keys keep.
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
    /// The least keys of lanes that stand side by side.
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
    use crate::scalar::{Real, lit};

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
}
