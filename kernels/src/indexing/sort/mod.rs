//! Sorting by [rank](Machine::rank), and selection of the first elements of an order.
//!
//! Ranks are sorted together with the positions of their elements, so no two keys are equal: every algorithm gives the
//! same result, and equal elements keep their order. Many keys are sorted by radix sort, few by comparison.

mod first;
mod key;
mod order;
mod radix;

use std::collections::TryReserveError;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::copy::Pointer;
use crate::number::scalar::Machine;
use crate::runtime::threads::parallel_for;
use key::{GRAIN, Key, fill, is_short, turn};
use order::Order;
use radix::sort_by_digits;

pub use first::first;

/// Below this number, keys are sorted by comparison.
const FEW: usize = 192;

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

#[cfg(test)]
mod tests {
    use super::radix::MANY;
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
