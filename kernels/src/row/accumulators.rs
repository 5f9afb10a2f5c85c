//! [`Accumulators`]: reductions of a row whose lanes machine code accumulates, in the order of [`sweep`](super::sweep).

use super::Reduction;
use super::body::Computed;
use super::reduced::by_kind;
use super::sweep::{LANES, Lanes, Sections, fold};
use crate::reduce::rows::SECTION;
use crate::runtime::simd::clones;

/// The lanes of several reductions.
pub(crate) struct Accumulators<T> {
    kinds: Vec<Option<Reduction>>,
    totals: Vec<Lanes<T>>,
    sums: Vec<T>,
    sections: Sections<T>,
}

impl<T: Computed> Accumulators<T> {
    pub fn new() -> Self {
        Accumulators { kinds: vec![], totals: vec![], sums: vec![], sections: Sections::new() }
    }

    /// Reduces a row of `n` elements. `run` reduces the elements from a position on, of which there are so many: several blocks
    /// of [`LANES`], or at the end fewer than one.
    pub fn reduce(
        &mut self,
        n: usize,
        kinds: impl Iterator<Item = Reduction>,
        mut run: impl FnMut(usize, usize, &mut [Lanes<T>]),
    ) -> &[T] {
        self.kinds.clear();
        self.kinds.extend(kinds.map(Some));
        self.totals.resize(self.kinds.len(), [T::ZERO; LANES]);
        self.sums.resize(self.kinds.len(), T::ZERO);
        let mut start = 0;
        loop {
            let end = if n - start > SECTION { start + SECTION } else { n };
            self.totals.iter_mut().zip(&self.kinds).for_each(|(lanes, kind)| lanes.fill(identity(*kind)));
            let whole = end - (end - start) % LANES;
            if start < whole {
                run(start, whole - start, &mut self.totals);
            }
            if whole < end {
                run(whole, end - whole, &mut self.totals);
            }
            start = end;
            for ((sum, total), kind) in self.sums.iter_mut().zip(&self.totals).zip(&self.kinds) {
                *sum = folded(total, kind.unwrap_or(Reduction::Sum));
            }
            if n <= SECTION {
                return &self.sums;
            }
            self.sections.push(&self.kinds, &self.sums);
            if start == n {
                self.sections.finish(&self.kinds, &mut self.sums);
                return &self.sums;
            }
        }
    }
}

fn identity<T: Computed>(kind: Option<Reduction>) -> T {
    kind.map_or(T::ZERO, Reduction::identity)
}

clones! {
    /// Reduces all lanes to one value.
    <[T]> fn folded(lanes: &Lanes<T>, kind: Reduction) -> T where [T: Computed] if [T::FOR_EACH_LEVEL] {
        by_kind!(kind, fold(lanes))
    }
}

#[inline(always)]
fn with_rest<T: Computed>(lanes: &mut Lanes<T>, rest: &[T], kind: Reduction) {
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = kind.combine(*lane, kind.combine(kind.identity(), *x));
    }
}

clones! {
    /// Combines fewer elements than there are lanes with these: the last run of a section.
    pub(crate) <[T]> fn add_rest(lanes: &mut Lanes<T>, rest: &[T], kind: Reduction) -> () where [T: Computed] if [T::FOR_EACH_LEVEL] {
        by_kind!(kind, with_rest(lanes, rest))
    }
}
