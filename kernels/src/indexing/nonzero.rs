//! The positions of nonzero elements.

use crate::memory::copy::Pointer;
use crate::number::scalar::Machine;
use crate::runtime::stop::filled;
use crate::runtime::threads::parallel_for;

/// The number of elements that are counted together.
const BLOCK: usize = 32 * 1024;

/// The nonzero elements of a slice.
pub struct Nonzero<'a, T> {
    x: &'a [T],
    /// For each block, the number of nonzero elements before it.
    before: Vec<usize>,
    count: usize,
}

impl<'a, T: Machine> Nonzero<'a, T> {
    /// Counts the nonzero elements.
    pub fn of(x: &'a [T]) -> Nonzero<'a, T> {
        let mut before = filled(0usize, x.len().div_ceil(BLOCK));
        let to = Pointer(before.as_mut_ptr());
        parallel_for(before.len(), 1, |blocks| {
            for (block, elements) in blocks.clone().zip(x[blocks.start * BLOCK..].chunks(BLOCK)) {
                let count = elements.iter().map(|v| usize::from(v.truthy())).sum();
                // SAFETY: one of the blocks, to which no other call writes.
                unsafe { to.get().add(block).write(count) };
            }
        });
        let mut count = 0;
        before.iter_mut().for_each(|block| count += std::mem::replace(block, count));
        Nonzero { x, before, count }
    }

    /// The number of nonzero elements.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Writes the indices of the nonzero elements for a tensor of this shape: a row per element, with one index per
    /// dimension. Elements for which `out` has no row are left out, and rows without an element are filled with `fill`.
    ///
    /// # Panics
    /// If the size of `out` is no multiple of that of a row, or that of the shape differs from the number of elements.
    pub fn write(&self, shape: &[usize], fill: i64, out: &mut [i64]) {
        let rank = shape.len();
        assert_eq!(self.x.len(), shape.iter().product::<usize>(), "one element for each position");
        if rank == 0 {
            return;
        }
        assert_eq!(out.len() % rank, 0, "rows with one index for each dimension");
        let size = out.len() / rank;
        let (out, missing) = out.split_at_mut(self.count.min(size) * rank);
        missing.fill(fill);
        let to = Pointer(out.as_mut_ptr());
        parallel_for(self.before.len(), 1, |blocks| {
            for block in blocks {
                let end = self.before.get(block + 1).copied().unwrap_or(self.count).min(size);
                let first = self.before[block].min(size);
                // SAFETY: the rows of this block, to which no other call writes.
                let rows = unsafe { std::slice::from_raw_parts_mut(to.get().add(first * rank), (end - first) * rank) };
                let start = block * BLOCK;
                let elements = &self.x[start..self.x.len().min(start + BLOCK)];
                let places = (start..).zip(elements).filter(|(_, v)| v.truthy()).map(|(at, _)| at);
                let mut rows = rows.chunks_exact_mut(rank);
                for mut at in places {
                    let Some(row) = rows.next() else { break };
                    for (position, size) in row.iter_mut().zip(shape).skip(1).rev() {
                        *position = (at % size) as i64;
                        at /= size;
                    }
                    row[0] = at as i64;
                }
                // The memory may be shared, and another thread may have changed elements since they were counted.
                rows.for_each(|row| row.fill(fill));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Truth;

    #[test]
    fn positions_are_those_of_a_plain_loop() {
        for shape in [&[][..], &[0], &[5], &[BLOCK + 7], &[3, 0, 2], &[3, 70, 11], &[2, 3, 5 * BLOCK]] {
            let n = shape.iter().product::<usize>();
            let mask: Vec<Truth> = (0..n).map(|i| (i * 7919 % 13 < 4).into()).collect();
            let found = Nonzero::of(&mask);
            let mut expected = Vec::new();
            for at in (0..n).filter(|at| mask[*at].get()) {
                let steps = (0..shape.len()).map(|d| shape[d + 1..].iter().product::<usize>());
                expected.extend(steps.zip(shape).map(|(step, size)| (at / step % size) as i64));
            }
            let count = found.count();
            assert_eq!(count, mask.iter().filter(|truth| truth.get()).count());
            for size in [count, 0, count / 2, count + 3] {
                let mut out = vec![-1; size * shape.len()];
                found.write(shape, -7, &mut out);
                let mut rows = expected.clone();
                rows.resize(out.len(), -7);
                assert!(out == rows, "{size} of {shape:?}");
            }
        }
    }
}
