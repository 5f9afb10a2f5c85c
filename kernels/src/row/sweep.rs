//! [`Sweep`]: one loop over the elements of a row.
//!
//! The loop takes blocks of [`LANES`] elements, in the order of [`reduce::rows`](crate::reduce::rows). Their results are private arrays of constant length. The compiler keeps
//! such arrays in vector registers, and knows that stores do not alias them.

use std::hint::black_box;

use super::Reduction;
use super::body::{Computed, KEPT};
pub(crate) use crate::reduce::rows::LANES;
use crate::reduce::rows::{RUN, SECTION};

/// Runs `$do` with `$k` as each number below the bound. The first are constants from the start: the compiler decides on
/// loops inside `$do` before it unrolls a loop over `$k`.
#[cfg(not(debug_assertions))]
macro_rules! each {
    ($k:ident < $bound:expr => $do:expr) => {{
        macro_rules! number {
            ($number:literal) => {
                if $number < $bound {
                    let $k: usize = $number;
                    $do
                }
            };
        }
        number!(0);
        number!(1);
        number!(2);
        number!(3);
        number!(4);
        number!(5);
        number!(6);
        number!(7);
        #[allow(clippy::reversed_empty_ranges)]
        for $k in 8..$bound {
            $do
        }
    }};
}
/// Runs `$do` with `$k` as each number below the bound. Debug builds compile it once.
#[cfg(debug_assertions)]
macro_rules! each {
    ($k:ident < $bound:expr => $do:expr) => {
        for $k in 0..$bound {
            $do
        }
    };
}
pub(super) use each;

/// One value for each lane.
pub(crate) type Lanes<T> = [T; LANES];

/// An array in memory whose vectors do not cross cache lines, which would take twice the time.
#[repr(align(64))]
struct Aligned<A>(A);

/// A loop over a row that computes `N` values for each element. A value is accumulated over the row, or used at the end
/// of each block.
pub(super) trait Sweep<T: Computed, const N: usize> {
    /// The number of values that may be accumulated, which are the first.
    const ACCUMULATED: usize;

    /// Called before each block, which is `len` elements from `start` on.
    fn begin(&self, _start: usize, _len: usize) {}

    /// Computes the element at `position`: combines its values with lane `lane`, and writes its expensive functions to
    /// that lane of `kept`.
    ///
    /// # Safety
    /// The position is in the row, and the lane is less than [`LANES`].
    unsafe fn element(&self, position: usize, lane: usize, values: &mut [Lanes<T>; N], kept: &mut [Lanes<T>; KEPT]);

    /// Called after each block.
    ///
    /// # Safety
    /// The elements are in the row.
    unsafe fn end(&self, _start: usize, _len: usize, _values: &[Lanes<T>; N], _kept: &[Lanes<T>; KEPT]) {}
}

/// Runs a sweep over a row of `n` elements. Returns the values that are accumulated: those with a reduction in `kinds`.
///
/// # Safety
/// The row has `n` elements.
#[inline(always)]
pub(super) unsafe fn sweep<T: Computed, S: Sweep<T, N>, const N: usize>(
    this: &S,
    n: usize,
    kinds: &[Option<Reduction>; N],
    sections: &mut Sections<T>,
) -> [T; N] {
    let mut kept = [[T::ZERO; LANES]; KEPT];
    let mut start = 0;
    loop {
        let end = if n - start > SECTION && S::ACCUMULATED > 0 { start + SECTION } else { n };
        let mut totals = identities::<T, S, N>(kinds);
        while start + LANES <= end {
            let left = (end - start) / LANES;
            let stop = start + (if left < RUN { left } else { RUN }) * LANES;
            let mut values = identities::<T, S, N>(kinds);
            while start < stop {
                this.begin(start, LANES);
                for lane in 0..LANES {
                    // SAFETY: the block is in the row.
                    unsafe { this.element(start + lane, lane, &mut values, &mut kept) };
                }
                // SAFETY: as above.
                unsafe { this.end(start, LANES, &values, &kept) };
                start += LANES;
            }
            add::<T, S, N>(kinds, &mut totals, &values);
        }
        // The rest has its own loop, because a loop of unknown length does not keep values in registers.
        if start < end {
            let (len, mut values) = (end - start, Aligned(identities::<T, S, N>(kinds)));
            this.begin(start, len);
            for lane in 0..len {
                // SAFETY: as above.
                unsafe { this.element(start + lane, lane, &mut values.0, &mut kept) };
            }
            // SAFETY: as above.
            unsafe { this.end(start, len, &values.0, &kept) };
            add::<T, S, N>(kinds, &mut totals, &values.0);
            start = end;
        }
        let mut sums = [T::ZERO; N];
        each!(k < S::ACCUMULATED => if let Some(kind) = kinds[k] {
            sums[k] = fold(&totals[k], kind);
        });
        if n <= SECTION || S::ACCUMULATED == 0 {
            return sums;
        }
        // The functions take references to copies: an array whose address escapes is not kept in registers.
        let (kinds, mut sums) = (*kinds, sums);
        sections.push(&kinds[..S::ACCUMULATED], &sums);
        if start == n {
            sections.finish(&kinds[..S::ACCUMULATED], &mut sums);
            return sums;
        }
    }
}

#[inline(always)]
fn identities<T: Computed, S: Sweep<T, N>, const N: usize>(kinds: &[Option<Reduction>; N]) -> [Lanes<T>; N] {
    let mut lanes = [[T::ZERO; LANES]; N];
    each!(k < S::ACCUMULATED => if let Some(kind) = kinds[k] {
        lanes[k] = [kind.identity(); LANES];
    });
    lanes
}

/// Adds the first lanes to the totals.
#[inline(always)]
fn add<T: Computed, S: Sweep<T, N>, const N: usize>(
    kinds: &[Option<Reduction>; N],
    totals: &mut [Lanes<T>; N],
    values: &[Lanes<T>; N],
) {
    each!(k < S::ACCUMULATED => if let Some(kind) = kinds[k] {
        for lane in 0..LANES {
            totals[k][lane] = kind.combine(totals[k][lane], values[k][lane]);
        }
    });
}

/// Reduces all lanes to one value.
#[inline(always)]
pub(super) fn fold<T: Computed>(lanes: &Lanes<T>, kind: Reduction) -> T {
    let lanes = halve::<T, 32>(lanes, kind);
    // From here on, single lanes are combined. The compiler must not see this, because it would keep single lanes in the
    // loop, too.
    let lanes = black_box(Aligned(halve::<T, 16>(&lanes, kind)));
    let lanes = halve::<T, 8>(&lanes.0, kind);
    let lanes = halve::<T, 4>(&lanes, kind);
    let lanes = halve::<T, 2>(&lanes, kind);
    kind.combine(lanes[0], lanes[1])
}

/// Combines the lanes of one half with those of the other.
#[inline(always)]
fn halve<T: Computed, const HALF: usize>(lanes: &[T], kind: Reduction) -> [T; HALF] {
    let mut half = [T::ZERO; HALF];
    for lane in 0..HALF {
        half[lane] = kind.combine(lanes[lane], lanes[lane + HALF]);
    }
    half
}

/// The results of the sections of a long row, which are combined pairwise.
pub(crate) struct Sections<T> {
    results: Vec<T>,
    count: usize,
}

impl<T: Computed> Sections<T> {
    pub fn new() -> Self {
        Sections { results: Vec::new(), count: 0 }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn push(&mut self, kinds: &[Option<Reduction>], section: &[T]) {
        self.results.extend_from_slice(&section[..kinds.len()]);
        self.count += 1;
        for _ in 0..self.count.trailing_zeros() {
            self.join(kinds);
        }
    }

    /// Combines the last two results.
    fn join(&mut self, kinds: &[Option<Reduction>]) {
        let right = self.results.len() - kinds.len();
        for k in 0..kinds.len() {
            if let Some(kind) = kinds[k] {
                let left = right - kinds.len() + k;
                self.results[left] = kind.combine(self.results[left], self.results[right + k]);
            }
        }
        self.results.truncate(right);
    }

    /// Moves the result of the row to `sums`.
    #[cold]
    #[inline(never)]
    pub(crate) fn finish(&mut self, kinds: &[Option<Reduction>], sums: &mut [T]) {
        while self.results.len() > kinds.len() {
            self.join(kinds);
        }
        sums[..kinds.len()].copy_from_slice(&self.results);
        self.results.clear();
        self.count = 0;
    }
}
