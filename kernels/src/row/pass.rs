//! [`Pass`]: a body with the arguments of one row, for any number type, and the computation of its reductions.

use super::accumulators::{Accumulators, LANES};
use super::body::{Computed, MOST_REDUCTIONS, OutOfRange, RowError, Rows};
use super::scope::ReductionArguments;
use super::structure::Structure;
use crate::memory::Lines;
use crate::memory::stream::{prefetch, stream};
use crate::runtime::stop::filled;

/// The arguments of one row.
pub struct Arguments<T, const I: usize, const X: usize> {
    pub n: usize,
    pub inputs: [*const T; I],
    /// The inputs of the next row, if there is one.
    pub next: [*const T; I],
    pub at: [i64; X],
}

impl<T: Computed, const I: usize, const X: usize> Arguments<T, I, X> {
    /// The arguments of a row. Absent inputs read from `zeros`, a row of zeros, so that the loops need no test.
    ///
    /// # Safety
    /// All operands have that row, with `n` elements if they have one per element.
    #[inline(always)]
    pub unsafe fn of(
        n: usize,
        row: usize,
        inputs: &[Rows<*const T>; I],
        at: &[Rows<*const i64>; X],
        along: &[bool; I],
        zeros: &[T],
    ) -> Result<Self, RowError> {
        let mut arguments = Arguments { n, inputs: [std::ptr::null(); I], next: [std::ptr::null(); I], at: [0; X] };
        for i in 0..I {
            let is_absent = inputs[i].data.is_null() || along[i] && n == 0;
            arguments.inputs[i] = if is_absent { zeros.as_ptr() } else { inputs[i].row(row) };
            arguments.next[i] = inputs[i].row(row + 1);
        }
        for x in 0..X {
            // SAFETY: the caller's contract. Other threads may write to the index, so `volatile` ensures that it is
            // read only once.
            let index = unsafe { at[x].row(row).read_volatile() };
            if index < 0 || index as usize >= n {
                return Err(RowError::OutOfRange(OutOfRange { argument: x, index, len: n }));
            }
            arguments.at[x] = index;
        }
        Ok(arguments)
    }

    /// Prefetches these elements of the next row. The first pass over a row waits for memory, and later passes find the
    /// row in the cache: prefetching in those passes keeps the memory busy.
    #[inline(always)]
    pub fn prefetch_next(&self, along: &[bool; I], start: usize, len: usize) {
        prefetch_next(along, &self.inputs, &self.next, start, len);
    }

    /// The inputs' elements at a position; zeros for an empty row.
    ///
    /// # Safety
    /// The position is in the row, or it is 0.
    #[inline(always)]
    pub unsafe fn element(&self, along: &[bool; I], position: usize) -> [T; I] {
        let mut x = [T::ZERO; I];
        for i in 0..I {
            // SAFETY: by contract.
            x[i] = unsafe { *self.inputs[i].add(if along[i] { position } else { 0 }) };
        }
        x
    }
}

/// Prefetches elements of the next row, for the operands that have one value per element.
#[inline(always)]
pub fn prefetch_next<T, const N: usize>(
    along: &[bool; N],
    here: &[*const T; N],
    next: &[*const T; N],
    start: usize,
    len: usize,
) {
    for k in 0..N {
        if along[k] && next[k] != here[k] {
            prefetch(next[k].wrapping_add(start), len);
        }
    }
}

/// The zeros that absent inputs and empty rows read; empty if there is no need for them.
pub fn zeros_for<T: Computed, const I: usize>(n: usize, inputs: &[Rows<*const T>; I]) -> Vec<T> {
    let is_needed = n == 0 || inputs.iter().any(|i| i.data.is_null());
    filled(T::ZERO, if is_needed { n.max(1) } else { 0 })
}

/// The results for a row up to the current pass.
pub struct State<T> {
    /// The results of reductions.
    pub known: [T; MOST_REDUCTIONS],
    /// A row of kept values for each expensive function.
    pub kept: Lines<T>,
    /// A row for each reduction, if any of them is running.
    pub running: Lines<T>,
    accumulators: Accumulators<T, MOST_REDUCTIONS>,
}

impl<T: Computed> State<T> {
    pub fn new(structure: &Structure, n: usize) -> Self {
        // Kept values are written before they are read, so they need no zeros, but zeros cost nothing.
        let kept = Lines::filled(T::ZERO, structure.kept * n.max(1));
        let running = structure.rows_of_sums(n);
        State { known: [T::ZERO; MOST_REDUCTIONS], kept, running, accumulators: Accumulators::new() }
    }
}

/// A body with the arguments of one row.
pub trait Pass<T: Computed> {
    /// An upper bound of the number of its reductions.
    const REDUCTIONS: usize;
    /// True if any of them is running.
    const RUNS: bool;

    /// The length of the row.
    fn len(&self) -> usize;

    /// Prefetches these elements of the next row, unless a later loop does.
    #[inline(always)]
    fn prefetch_next(&self, _start: usize, _len: usize) {}

    /// The arguments of the reductions of pass `P` at a position.
    ///
    /// # Safety
    /// The position is in the row.
    unsafe fn reduction_arguments<const P: usize>(&self, position: usize) -> ReductionArguments<T>;
}

/// Runs `$do` for the blocks of a row: `$len` elements from `$start` on, at most [`LANES`].
macro_rules! blocks {
    ($n:expr, $start:ident, $len:ident => $do:expr) => {{
        let mut $start = 0;
        while $start < $n {
            let $len = if $start + LANES <= $n { LANES } else { $n - $start };
            $do
            $start += LANES;
        }
    }};
}
pub(super) use blocks;

/// Computes the reductions of pass `P`.
///
/// `known` and the data that the pass reads must not be in `state` itself. Otherwise the compiler could assume that the
/// stores to the lanes change them, and would read them again for each element.
#[inline(always)]
pub fn reduce<T: Computed, S: Pass<T>, const P: usize>(pass: &S, structure: &Structure, state: &mut State<T>) {
    let (n, kinds) = (pass.len(), structure.of_pass(P));
    // A constant length, so that loops over the reductions are unrolled.
    let kinds = &kinds[..S::REDUCTIONS];
    state.accumulators.begin(kinds, n);
    blocks!(n, start, len => {
        if P > 0 {
            pass.prefetch_next(start, len);
        }
        for j in 0..len {
            // SAFETY: the position is in the row.
            let met = unsafe { pass.reduction_arguments::<P>(start + j) };
            for k in 0..S::REDUCTIONS {
                let (reduction, level) = met.kinds[k];
                if level == P {
                    // SAFETY: `len` is at most LANES, which the compiler can't see.
                    let lane = unsafe { state.accumulators.lanes[k].get_unchecked_mut(j) };
                    *lane = match reduction.is_running() {
                        true => met.arguments[k],
                        false => reduction.combine(*lane, met.arguments[k]),
                    };
                }
            }
        }
        if S::RUNS {
            for k in structure.running_of(P) {
                state.running[k * n + start..][..len].copy_from_slice(&state.accumulators.lanes[k][..len]);
            }
        }
        state.accumulators.block(kinds);
    });
    if S::RUNS {
        for k in structure.running_of(P) {
            structure.kinds[k].0.accumulate(&mut state.running[k * n..][..n]);
        }
    }
    let results = state.accumulators.finish(kinds);
    for k in 0..S::REDUCTIONS {
        if kinds[k].is_some() {
            state.known[k] = results[k];
        }
    }
}

/// Copies a block to memory. Large results bypass the cache.
///
/// # Safety
/// There is room for `len` elements.
#[inline(always)]
pub unsafe fn put<T: Copy>(lanes: &[T; LANES], place: *mut T, len: usize, is_large: bool) {
    // SAFETY: by contract.
    unsafe {
        match len {
            LANES if is_large => stream(lanes.as_ptr().cast(), place.cast(), size_of_val(lanes)),
            LANES => *place.cast::<[T; LANES]>() = *lanes,
            _ => std::slice::from_raw_parts_mut(place, len).copy_from_slice(&lanes[..len]),
        }
    }
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
