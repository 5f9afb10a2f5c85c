//! [`Structure`]: the properties of a body that one evaluation reveals.

use std::cell::Cell;

use super::Reduction;
use super::body::{Body, Computed, KEPT, MOST_REDUCTIONS, RowError};
use super::lane::{Lane, UNKNOWN};
use super::scope::{Scope, scope};
use crate::memory::Lines;
use crate::number::Dual;

/// The properties of a body that one evaluation reveals.
#[derive(Clone, Copy)]
pub(super) struct Structure {
    pub reductions: usize,
    pub levels: usize,
    pub kinds: [(Reduction, usize); MOST_REDUCTIONS],
    /// The number of expensive functions that are kept.
    pub kept: usize,
}

impl Structure {
    /// Evaluates the body once.
    #[inline(always)]
    pub fn of<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
        body: &B,
    ) -> Result<Structure, RowError> {
        let (known, mut kept) = ([T::ZERO; MOST_REDUCTIONS], [T::ZERO; KEPT]);
        scope!(scope: T, known &known, kept kept.as_mut_ptr(), running std::ptr::null(), direction usize::MAX, position 0, count 1);
        let mut x = [Lane::<T, 0>::outside(T::ZERO); I];
        for i in 0..I {
            x[i] = Lane::new(T::ZERO, B::ALONG[i], &scope);
        }
        let outputs = body.eval(x, [0; X]);
        if outputs.iter().any(|output| output.is_unknown()) {
            return Err(RowError::Constant);
        }
        match (0..O).find(|k| !B::GIVES[*k] && outputs[*k].varies()) {
            Some(k) => Err(RowError::Varies(k)),
            None => Structure::seen(&scope, B::REDUCTIONS, B::LEVELS, B::RUNS),
        }
    }

    /// Evaluates the body once at dual numbers.
    #[inline(always)]
    pub fn of_dual<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
        body: &B,
    ) -> Result<Structure, RowError> {
        let (known, mut kept) = ([T::ZERO; MOST_REDUCTIONS], [T::ZERO; KEPT]);
        scope!(scope: T, known &known, kept kept.as_mut_ptr(), running std::ptr::null(), direction usize::MAX, position 0, count 1);
        let mut x = [Dual::constant_of(Lane::<T, 0>::outside(T::ZERO)); I];
        for i in 0..I {
            x[i] = Dual::constant_of(Lane::new(T::ZERO, B::ALONG[i], &scope));
        }
        let _ = body.eval(x, [0; X]);
        Structure::seen(&scope, B::REDUCTIONS, B::LEVELS, B::RUNS)
    }

    /// The reductions of one pass that return one number.
    #[inline(always)]
    pub fn of_pass(&self, pass: usize) -> [Option<Reduction>; MOST_REDUCTIONS] {
        self.kinds.map(|(reduction, level)| (level == pass && !reduction.is_running()).then_some(reduction))
    }

    /// The running reductions of one pass.
    pub fn running_of(&self, pass: usize) -> impl Iterator<Item = usize> {
        let kinds = self.kinds;
        (0..MOST_REDUCTIONS).filter(move |k| kinds[*k].1 == pass && kinds[*k].0.is_running())
    }

    fn runs(&self) -> bool {
        self.kinds.iter().any(|(reduction, _)| reduction.is_running())
    }

    /// A row of zeros for each reduction, if any is running.
    pub fn rows_of_sums<T: Computed>(&self, n: usize) -> Lines<T> {
        Lines::filled(T::ZERO, if self.runs() { self.reductions * n.max(1) } else { 0 })
    }

    #[inline(always)]
    fn seen<T: Computed>(
        scope: &Scope<'_, T>,
        most: usize,
        levels: (usize, usize),
        may_run: bool,
    ) -> Result<Structure, RowError> {
        let (reductions, kept) = (scope.count_reductions.get(), scope.expensive.get().min(KEPT));
        let mut seen =
            Structure { reductions, levels: 0, kinds: [(Reduction::Sum, usize::MAX); MOST_REDUCTIONS], kept };
        for k in 0..reductions.min(MOST_REDUCTIONS) {
            seen.kinds[k] = scope.kind[k].get();
            if seen.kinds[k].1 >= UNKNOWN {
                return Err(RowError::Constant);
            }
            seen.levels = seen.levels.max(seen.kinds[k].1 + 1);
        }
        if reductions > most || seen.levels < levels.0 || seen.levels > levels.1 {
            return Err(RowError::Reductions { count: reductions, levels: seen.levels });
        }
        match seen.runs() && !may_run {
            true => Err(RowError::Runs),
            false => Ok(seen),
        }
    }
}
