//! [`Structure`]: the properties of a body that one evaluation reveals.

use std::cell::Cell;

use super::Reduction;
use super::body::{Body, ComputedFloat, KEPT, MOST_REDUCTIONS, RowError};
use super::lane::{Lane, UNKNOWN};
use super::place::put;
use super::scope::{Scope, scope};
use super::sweep::{LANES, Lanes, each};
use crate::memory::Lines;
use crate::number::Dual;

/// The properties of a body that one evaluation reveals.
#[derive(Clone, Copy)]
pub(super) struct Structure {
    pub reductions: usize,
    pub levels: usize,
    pub kinds: [(Reduction, usize); MOST_REDUCTIONS],
    /// The pass that computes each of the expensive functions that are kept.
    pub keeper: [usize; KEPT],
}

impl Structure {
    /// Evaluates the body once. Returns the structure apart from the error: in a `Result`, it would not be constant to
    /// the compiler.
    #[inline(always)]
    pub fn of<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
        body: &B,
    ) -> (Structure, Result<(), RowError>) {
        let (known, mut keeps) = ([T::ZERO; MOST_REDUCTIONS], [[T::ZERO; LANES]; KEPT]);
        scope!(scope: T, known &known, kept std::ptr::null(), keeps keeps.as_mut_ptr().cast(), running std::ptr::null(), direction usize::MAX, position 0, count 1);
        let mut x = [Lane::<T, 0>::outside(T::ZERO); I];
        for i in 0..I {
            x[i] = Lane::new(T::ZERO, B::ALONG[i], &scope);
        }
        let outputs = body.eval(x, [0; X]);
        let structure = Structure::seen(&scope);
        let mut result = structure.check(B::REDUCTIONS, B::LEVELS, B::RUNS);
        for k in (0..O).rev() {
            if !B::GIVES[k] && outputs[k].varies() {
                result = Err(RowError::Varies(k));
            }
        }
        for k in 0..O {
            if outputs[k].is_unknown() {
                result = Err(RowError::Constant);
            }
        }
        (structure, result)
    }

    /// Like [`Structure::of`], at dual numbers.
    #[inline(always)]
    pub fn of_dual<T: ComputedFloat, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
        body: &B,
    ) -> (Structure, Result<(), RowError>) {
        let (known, mut keeps) = ([T::ZERO; MOST_REDUCTIONS], [[T::ZERO; LANES]; KEPT]);
        scope!(scope: T, known &known, kept std::ptr::null(), keeps keeps.as_mut_ptr().cast(), running std::ptr::null(), direction usize::MAX, position 0, count 1);
        let mut x = [Dual::constant_of(Lane::<T, 0>::outside(T::ZERO)); I];
        for i in 0..I {
            x[i] = Dual::constant_of(Lane::new(T::ZERO, B::ALONG[i], &scope));
        }
        let _ = body.eval(x, [0; X]);
        let structure = Structure::seen(&scope);
        (structure, structure.check(B::REDUCTIONS, B::LEVELS, B::RUNS))
    }

    /// The first reductions that pass `pass` computes, unless they are running.
    #[inline(always)]
    pub fn of_pass(&self, pass: usize, count: usize) -> [Option<Reduction>; MOST_REDUCTIONS] {
        let mut kinds = [None; MOST_REDUCTIONS];
        each!(k < count => {
            let (reduction, level) = self.kinds[k];
            if level == pass && !reduction.is_running() {
                kinds[k] = Some(reduction);
            }
        });
        kinds
    }

    /// The running reductions of one pass.
    #[inline(always)]
    pub fn running_of(&self, pass: usize) -> impl Iterator<Item = usize> {
        let kinds = self.kinds;
        (0..MOST_REDUCTIONS).filter(move |k| kinds[*k].1 == pass && kinds[*k].0.is_running())
    }

    #[inline(always)]
    fn runs(&self) -> bool {
        let mut runs = false;
        each!(k < MOST_REDUCTIONS => runs |= self.kinds[k].0.is_running());
        runs
    }

    /// A row of zeros for each expensive function that is kept, and room for the last block.
    #[inline(always)]
    pub fn rows_of_kept<T: ComputedFloat>(&self, n: usize) -> Lines<T> {
        let mut kept = 0;
        each!(slot < KEPT => kept += usize::from(self.keeper[slot] != usize::MAX));
        Lines::filled(T::ZERO, if kept > 0 { kept * n + LANES } else { 0 })
    }

    /// A row of zeros for each reduction and room for the last block, if any is running.
    #[inline(always)]
    pub fn rows_of_sums<T: ComputedFloat>(&self, n: usize) -> Lines<T> {
        Lines::filled(T::ZERO, if self.runs() { self.reductions * n + LANES } else { 0 })
    }

    /// Copies the values of a block that pass `pass` computed to the rows of kept values.
    ///
    /// # Safety
    /// The rows have `n` elements, and the block is in the row.
    #[inline(always)]
    pub unsafe fn keep<T: ComputedFloat>(
        &self,
        pass: usize,
        kept: *mut T,
        n: usize,
        start: usize,
        len: usize,
        block: &[Lanes<T>; KEPT],
    ) {
        each!(slot < KEPT => if self.keeper[slot] == pass {
            // SAFETY: by contract.
            unsafe { put(&block[slot], kept.add(slot * n + start), len, false) };
        });
    }

    #[inline(always)]
    fn seen<T: ComputedFloat>(scope: &Scope<'_, T>) -> Structure {
        let mut seen = Structure {
            reductions: scope.count_reductions.get(),
            levels: 0,
            kinds: [(Reduction::Sum, usize::MAX); MOST_REDUCTIONS],
            keeper: [usize::MAX; KEPT],
        };
        each!(slot < KEPT => seen.keeper[slot] = scope.keeper[slot].get());
        each!(k < MOST_REDUCTIONS => {
            seen.kinds[k] = scope.kind[k].get();
            let levels = seen.kinds[k].1.wrapping_add(1);
            seen.levels = if levels > seen.levels { levels } else { seen.levels };
        });
        seen
    }

    #[inline(always)]
    fn check(&self, most: usize, levels: (usize, usize), may_run: bool) -> Result<(), RowError> {
        let (count, depth) = (self.reductions, self.levels);
        if depth > UNKNOWN {
            Err(RowError::Constant)
        } else if count > most || depth < levels.0 || depth > levels.1 {
            Err(RowError::Reductions { count, levels: depth })
        } else if self.runs() && !may_run {
            Err(RowError::Runs)
        } else {
            Ok(())
        }
    }
}
