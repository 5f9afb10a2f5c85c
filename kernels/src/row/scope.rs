//! [`Scope`]: the state of one evaluation of a body. [`Structure`]: the properties of a body that one evaluation
//! reveals.

use std::cell::Cell;

use super::Reduction;
use super::body::{Body, Computed, KEPT, MOST_REDUCTIONS, RowError};
use super::lane::{Lane, UNKNOWN};
use super::pass::ReductionArguments;
use crate::memory::Lines;
use crate::number::Dual;

/// The state of one evaluation of the body. Its cells are local to one iteration of a loop: the compiler turns them
/// into registers or removes them.
pub(super) struct Scope<'a, T> {
    /// The number of reductions so far.
    pub count_reductions: &'a Cell<usize>,
    /// The number of expensive functions so far.
    pub expensive: &'a Cell<usize>,
    /// The results of reductions that earlier passes computed.
    pub known: &'a [T; MOST_REDUCTIONS],
    /// The arguments of reductions.
    pub argument: &'a [Cell<T>; MOST_REDUCTIONS],
    /// The derivatives of the arguments, unless they are known to be 0.
    pub tangent: &'a [Cell<Option<T>>; MOST_REDUCTIONS],
    /// The kind of each reduction, and the number of passes that it depends on.
    pub kind: &'a [Cell<(Reduction, usize)>; MOST_REDUCTIONS],
    /// The kept values of this position, from earlier passes or this one: the first of [`KEPT`] places, `count` apart.
    pub kept: *mut T,
    /// The running results at this position, from earlier passes: that of the first reduction; the others follow
    /// `count` apart.
    pub running: *const T,
    /// The reduction that is the variable of differentiation.
    pub direction: usize,
    pub position: usize,
    pub count: usize,
}

impl<T: Computed> Scope<'_, T> {
    /// The arguments of the first reductions.
    #[inline(always)]
    pub fn reduction_arguments(&self, count: usize) -> ReductionArguments<T> {
        let mut found = ReductionArguments {
            arguments: [T::ZERO; MOST_REDUCTIONS],
            kinds: [(Reduction::Sum, usize::MAX); MOST_REDUCTIONS],
        };
        for k in 0..count {
            found.arguments[k] = self.argument[k].get();
            found.kinds[k] = self.kind[k].get();
        }
        found
    }
}

/// Declares a [`Scope`] with fresh cells.
macro_rules! scope {
    ($scope:ident: $t:ty, known $known:expr, kept $kept:expr, running $running:expr, direction $direction:expr, position $position:expr, count $count:expr) => {
        let (count_reductions, expensive) = (Cell::new(0), Cell::new(0));
        let argument = [const { Cell::new(<$t>::ZERO) }; MOST_REDUCTIONS];
        let tangent = [const { Cell::new(None) }; MOST_REDUCTIONS];
        let kind = [const { Cell::new((Reduction::Sum, usize::MAX)) }; MOST_REDUCTIONS];
        let $scope = Scope {
            count_reductions: &count_reductions,
            expensive: &expensive,
            known: $known,
            argument: &argument,
            tangent: &tangent,
            kind: &kind,
            kept: $kept,
            running: $running,
            direction: $direction,
            position: $position,
            count: $count,
        };
    };
}
pub(super) use scope;

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
