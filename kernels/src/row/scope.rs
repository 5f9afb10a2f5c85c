//! [`Scope`]: the state of one evaluation of a body.

use std::cell::Cell;

use super::Reduction;
use super::body::{ComputedFloat, KEPT, MOST_REDUCTIONS};
use super::sweep::each;

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
    /// The pass that computes each of the expensive functions that are kept.
    pub keeper: &'a [Cell<usize>; KEPT],
    /// The kept values of this position, from earlier passes: the first of [`KEPT`] places, `count` apart.
    pub kept: *const T,
    /// The places for values that this pass computes and keeps: the first of [`KEPT`] places, [`LANES`](super::sweep::LANES) apart.
    pub keeps: *mut T,
    /// The running results at this position, from earlier passes: that of the first reduction; the others follow
    /// `count` apart.
    pub running: *const T,
    /// The reduction that is the variable of differentiation.
    pub direction: usize,
    pub position: usize,
    pub count: usize,
}

impl<T: ComputedFloat> Scope<'_, T> {
    /// The arguments of the first reductions.
    #[inline(always)]
    pub fn reduction_arguments(&self, count: usize) -> ReductionArguments<T> {
        let mut found = ReductionArguments {
            arguments: [T::ZERO; MOST_REDUCTIONS],
            kinds: [(Reduction::Sum, usize::MAX); MOST_REDUCTIONS],
        };
        each!(k < count => {
            found.arguments[k] = self.argument[k].get();
            found.kinds[k] = self.kind[k].get();
        });
        found
    }
}

/// Declares a [`Scope`] with fresh cells.
macro_rules! scope {
    ($scope:ident: $t:ty, known $known:expr, kept $kept:expr, keeps $keeps:expr, running $running:expr, direction $direction:expr, position $position:expr, count $count:expr) => {
        let (count_reductions, expensive) = (Cell::new(0), Cell::new(0));
        let argument = [const { Cell::new(<$t>::ZERO) }; MOST_REDUCTIONS];
        let tangent = [const { Cell::new(None) }; MOST_REDUCTIONS];
        let keeper = [const { Cell::new(usize::MAX) }; super::body::KEPT];
        let kind = [const { Cell::new((Reduction::Sum, usize::MAX)) }; MOST_REDUCTIONS];
        let $scope = Scope {
            count_reductions: &count_reductions,
            expensive: &expensive,
            known: $known,
            argument: &argument,
            tangent: &tangent,
            kind: &kind,
            keeper: &keeper,
            kept: $kept,
            keeps: $keeps,
            running: $running,
            direction: $direction,
            position: $position,
            count: $count,
        };
    };
}
pub(super) use scope;

/// The arguments of reductions, with the kind of each and the pass that computes it.
pub struct ReductionArguments<T> {
    pub arguments: [T; MOST_REDUCTIONS],
    pub kinds: [(Reduction, usize); MOST_REDUCTIONS],
}
