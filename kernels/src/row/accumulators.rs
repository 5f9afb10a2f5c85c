//! [`Accumulators`]: the partial results of reductions over a row.

use super::Reduction;
use super::body::Computed;
use crate::memory::Aligned;

/// The number of elements that are reduced in parallel.
pub(super) const LANES: usize = 256;
/// The number of blocks of [`LANES`] that are reduced in order before results are combined pairwise.
const RUN: usize = 32;

/// Partial results of several reductions. The results of blocks are combined pairwise, which is accurate and always in
/// the same order. `None` is not reduced.
pub(super) struct Accumulators<T, const N: usize> {
    pub lanes: Aligned<[[T; LANES]; N]>,
    /// The number of lanes that the row needs: a power of two.
    width: usize,
    stack: Vec<[T; N]>,
    blocks: usize,
}

impl<T: Computed, const N: usize> Accumulators<T, N> {
    pub fn new() -> Self {
        Accumulators { lanes: Aligned([[T::ZERO; LANES]; N]), width: LANES, stack: Vec::new(), blocks: 0 }
    }

    /// Starts a row of `n` elements.
    #[inline(always)]
    pub fn begin(&mut self, kinds: &[Option<Reduction>], n: usize) {
        self.width = if n >= LANES { LANES } else { n.next_power_of_two() };
        self.clear(kinds);
        self.stack.clear();
        self.blocks = 0;
    }

    #[inline(always)]
    fn clear(&mut self, kinds: &[Option<Reduction>]) {
        for (lanes, kind) in self.lanes.iter_mut().zip(kinds) {
            if let Some(kind) = kind {
                lanes[..self.width].fill(kind.identity());
            }
        }
    }

    /// Finishes a block of lanes.
    #[inline(always)]
    pub fn block(&mut self, kinds: &[Option<Reduction>]) {
        self.blocks += 1;
        if self.blocks.is_multiple_of(RUN) {
            self.push(kinds);
        }
    }

    #[inline(never)]
    fn push(&mut self, kinds: &[Option<Reduction>]) {
        let mut sum = self.folded(kinds);
        for _ in 0..(self.blocks / RUN - 1).trailing_ones() {
            if let Some(left) = self.stack.pop() {
                sum = combined(kinds, &left, &sum);
            }
        }
        self.clear(kinds);
        self.stack.push(sum);
    }

    #[inline(always)]
    fn folded(&self, kinds: &[Option<Reduction>]) -> [T; N] {
        let mut all = [T::ZERO; N];
        for k in 0..kinds.len() {
            if let Some(kind) = kinds[k] {
                all[k] = fold(&self.lanes[k][..self.width], kind);
            }
        }
        all
    }

    /// The results of the row.
    #[inline(always)]
    pub fn finish(&self, kinds: &[Option<Reduction>]) -> [T; N] {
        let mut sum = self.folded(kinds);
        for left in self.stack.iter().rev() {
            sum = combined(kinds, left, &sum);
        }
        sum
    }
}

#[inline(always)]
fn combined<T: Computed, const N: usize>(kinds: &[Option<Reduction>], left: &[T; N], right: &[T; N]) -> [T; N] {
    let mut both = *right;
    for k in 0..kinds.len() {
        if let Some(kind) = kinds[k] {
            both[k] = kind.combine(left[k], right[k]);
        }
    }
    both
}

/// Reduces all lanes to one value; their number is a power of two.
#[inline(always)]
fn fold<T: Computed>(lanes: &[T], kind: Reduction) -> T {
    /// The number of lanes that are folded in registers.
    const FEW: usize = 32;
    let mut few = [kind.identity(); FEW];
    if lanes.len() < FEW {
        few[..lanes.len()].copy_from_slice(lanes);
    }
    for block in lanes.chunks_exact(FEW) {
        for (all, lane) in few.iter_mut().zip(block) {
            *all = kind.combine(*all, *lane);
        }
    }
    let mut width = FEW;
    while width > 1 {
        width /= 2;
        for l in 0..width {
            few[l] = kind.combine(few[l], few[l + width]);
        }
    }
    few[0]
}
