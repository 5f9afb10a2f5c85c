//! [`Pass`]: a body with the arguments of one row, for any number type, and the computation of its reductions.

use super::body::{ComputedFloat, KEPT, MOST_REDUCTIONS};
use super::place::put;
use super::scope::ReductionArguments;
use super::structure::Structure;
use super::sweep::{Lanes, Sections, Sweep, each, sweep};
use crate::memory::Lines;

/// The results for a row up to the current pass.
pub struct State<T> {
    /// The results of reductions.
    pub known: [T; MOST_REDUCTIONS],
    /// A row of kept values for each expensive function.
    pub kept: Lines<T>,
    /// A row for each reduction, if any of them is running.
    pub running: Lines<T>,
    pub sections: Sections<T>,
}

impl<T: ComputedFloat> State<T> {
    pub fn new(structure: &Structure, n: usize) -> Self {
        // Kept values are written before they are read, so they need no zeros, but zeros cost nothing.
        let (kept, running) = (structure.rows_of_kept(n), structure.rows_of_sums(n));
        State { known: [T::ZERO; MOST_REDUCTIONS], kept, running, sections: Sections::new() }
    }
}

/// A body with the arguments of one row.
pub trait Pass<T: ComputedFloat> {
    /// An upper bound of the number of its reductions.
    const REDUCTIONS: usize;
    /// True if any of them is running.
    const RUNS: bool;

    /// The length of the row.
    fn len(&self) -> usize;

    /// The rows of kept values.
    fn kept(&self) -> *mut T;

    /// The rows of running results.
    fn running(&self) -> *mut T;

    /// Prefetches these elements of the next row, unless a later loop does.
    #[inline(always)]
    fn prefetch_next(&self, _start: usize, _len: usize) {}

    /// The arguments of the reductions of pass `P` at a position.
    ///
    /// # Safety
    /// The position is in the row. There are [`KEPT`] places for kept values.
    unsafe fn reduction_arguments<const P: usize>(&self, position: usize, keeps: *mut T) -> ReductionArguments<T>;
}

/// The sweep that computes the reductions of pass `P`.
struct Reductions<'a, S, const P: usize> {
    pass: &'a S,
    structure: &'a Structure,
}

impl<T: ComputedFloat, S: Pass<T>, const P: usize> Sweep<T, MOST_REDUCTIONS> for Reductions<'_, S, P> {
    const ACCUMULATED: usize = S::REDUCTIONS;

    #[inline(always)]
    fn begin(&self, start: usize, len: usize) {
        if P > 0 {
            self.pass.prefetch_next(start, len);
        }
    }

    #[inline(always)]
    unsafe fn element(
        &self,
        position: usize,
        lane: usize,
        values: &mut [Lanes<T>; MOST_REDUCTIONS],
        kept: &mut [Lanes<T>; KEPT],
    ) {
        // SAFETY: by contract.
        let met = unsafe { self.pass.reduction_arguments::<P>(position, kept.as_mut_ptr().cast::<T>().add(lane)) };
        each!(k < S::REDUCTIONS => {
            let (reduction, level) = met.kinds[k];
            if level == P {
                // SAFETY: by contract.
                let value = unsafe { values[k].get_unchecked_mut(lane) };
                *value = match reduction.is_running() {
                    true => met.arguments[k],
                    false => reduction.combine(*value, met.arguments[k]),
                };
            }
        });
    }

    #[inline(always)]
    unsafe fn end(&self, start: usize, len: usize, values: &[Lanes<T>; MOST_REDUCTIONS], kept: &[Lanes<T>; KEPT]) {
        let n = self.pass.len();
        // SAFETY: by contract.
        unsafe { self.structure.keep(P, self.pass.kept(), n, start, len, kept) };
        if S::RUNS {
            for k in self.structure.running_of(P) {
                // SAFETY: there is a row for each reduction.
                unsafe { put(&values[k], self.pass.running().add(k * n + start), len, false) };
            }
        }
    }
}

/// Computes the reductions of pass `P`.
#[inline(always)]
pub fn reduce<T: ComputedFloat, S: Pass<T>, const P: usize>(
    pass: &S,
    structure: &Structure,
    known: &mut [T; MOST_REDUCTIONS],
    sections: &mut Sections<T>,
) {
    let n = pass.len();
    let kinds = structure.of_pass(P, S::REDUCTIONS);
    // SAFETY: the row has that length.
    let results = unsafe { sweep(&Reductions::<S, P> { pass, structure }, n, &kinds, sections) };
    if S::RUNS {
        for k in structure.running_of(P) {
            // SAFETY: there is a row for each reduction.
            structure.kinds[k].0.accumulate(unsafe { std::slice::from_raw_parts_mut(pass.running().add(k * n), n) });
        }
    }
    each!(k < S::REDUCTIONS => if kinds[k].is_some() {
        known[k] = results[k];
    });
}

/// Runs `$do` with `$p` as the number of each pass that a body may have.
macro_rules! passes {
    ($body:ty, $p:ident => $do:expr) => {{
        macro_rules! pass {
            ($number:literal) => {
                if $number < <$body>::LEVELS.1 + 1 {
                    const $p: usize = $number;
                    $do
                }
            };
        }
        pass!(0);
        pass!(1);
        pass!(2);
        pass!(3);
        pass!(4);
    }};
}
pub(super) use passes;
