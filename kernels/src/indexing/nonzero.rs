//! The positions of the true elements of a mask.

use crate::memory::copy::Pointer;
use crate::number::Truth;
use crate::runtime::stop::filled;
use crate::runtime::threads::parallel_for;

/// The number of elements that are counted together.
const BLOCK: usize = 32 * 1024;

/// The elements of a mask that are true.
pub struct Nonzero<'a> {
    mask: &'a [Truth],
    /// For each block, the number of true elements before it.
    before: Vec<usize>,
    count: usize,
}

impl<'a> Nonzero<'a> {
    /// Counts the true elements. The mask must not be modified during the lifetime of the result.
    pub fn of(mask: &'a [Truth]) -> Nonzero<'a> {
        let mut before = filled(0usize, mask.len().div_ceil(BLOCK));
        let to = Pointer(before.as_mut_ptr());
        parallel_for(before.len(), 1, |blocks| {
            for (block, elements) in blocks.clone().zip(mask[blocks.start * BLOCK..].chunks(BLOCK)) {
                let count = elements.iter().map(|truth| usize::from(truth.get())).sum();
                // SAFETY: one of the blocks, to which no other call writes.
                unsafe { to.get().add(block).write(count) };
            }
        });
        let mut count = 0;
        before.iter_mut().for_each(|block| count += std::mem::replace(block, count));
        Nonzero { mask, before, count }
    }

    /// The number of true elements.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Writes the indices of the true elements for a tensor of this shape: a row per element, with one index per
    /// dimension.
    ///
    /// # Panics
    /// If the size of `out` differs from that of these rows, or that of the shape from that of the mask.
    pub fn write(&self, shape: &[usize], out: &mut [i64]) {
        let rank = shape.len();
        assert_eq!(out.len(), self.count * rank, "one row for each element that is true");
        assert_eq!(self.mask.len(), shape.iter().product::<usize>(), "one element for each position");
        if rank == 0 {
            return;
        }
        let to = Pointer(out.as_mut_ptr());
        parallel_for(self.before.len(), 1, |blocks| {
            for block in blocks {
                let end = self.before.get(block + 1).copied().unwrap_or(self.count);
                let rows = end - self.before[block];
                // SAFETY: the rows of this block, to which no other call writes.
                let rows =
                    unsafe { std::slice::from_raw_parts_mut(to.get().add(self.before[block] * rank), rows * rank) };
                let start = block * BLOCK;
                let elements = &self.mask[start..self.mask.len().min(start + BLOCK)];
                let places = (start..).zip(elements).filter(|(_, truth)| truth.get()).map(|(at, _)| at);
                for (row, mut at) in rows.chunks_exact_mut(rank).zip(places) {
                    for (position, size) in row.iter_mut().zip(shape).skip(1).rev() {
                        *position = (at % size) as i64;
                        at /= size;
                    }
                    row[0] = at as i64;
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_a_plain_loop() {
        for shape in [&[][..], &[0], &[5], &[BLOCK + 7], &[3, 0, 2], &[3, 70, 11], &[2, 3, 5 * BLOCK]] {
            let n = shape.iter().product::<usize>();
            let mask: Vec<Truth> = (0..n).map(|i| (i * 7919 % 13 < 4).into()).collect();
            let found = Nonzero::of(&mask);
            let mut out = vec![-1; found.count() * shape.len()];
            found.write(shape, &mut out);
            let mut expected = Vec::new();
            for at in (0..n).filter(|at| mask[*at].get()) {
                let steps = (0..shape.len()).map(|d| shape[d + 1..].iter().product::<usize>());
                expected.extend(steps.zip(shape).map(|(step, size)| (at / step % size) as i64));
            }
            assert_eq!(found.count(), mask.iter().filter(|truth| truth.get()).count());
            assert!(out == expected, "{shape:?}");
        }
    }
}
