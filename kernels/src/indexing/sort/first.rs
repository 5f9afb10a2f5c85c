//! Selection of the first elements of an order.

use std::collections::TryReserveError;

use super::key::{GRAIN, Key, is_short, push_keys};
use crate::memory::copy::Pointer;
use crate::memory::zeros;
use crate::number::scalar::Machine;
use crate::runtime::simd::clones;
use crate::runtime::threads::parallel_for;

/// The first elements of the [order](super::sort), one for each place, and their original positions.
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

fn write<T: Machine, K: Key>(x: &[T], keys: &[K], values: &mut [T], indices: &mut [i64]) {
    for ((key, v), i) in keys.iter().zip(values).zip(indices) {
        *v = x[key.position()];
        *i = key.position() as i64;
    }
}

/// The `k` least keys in order.
fn first_keys<T: Machine, K: Key>(x: &[T], descending: bool, k: usize) -> Result<Vec<K>, TryReserveError> {
    if k == 0 {
        return Ok(Vec::new());
    }
    let mut keys = if x.len() > 2 * GRAIN && k <= GRAIN / 4 {
        // Only the first keys of each part can be among the first keys.
        let parts = x.len().div_ceil(GRAIN);
        let mut found = zeros::<K>(parts * k)?;
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
