//! What a pass needs: the body, the memory of its arguments, and the structure that evaluating it once reveals.

use std::cell::Cell;
use std::fmt;

use super::lane::Lane;
use super::{Reduction, Row};
use crate::dual::Dual;
use crate::scalar::{Float, Machine};

/// The most reductions that a body may have.
pub const MOST_REDUCTIONS: usize = 8;
/// The most passes that its reductions may take: each depends on those of the passes before.
pub const MOST_LEVELS: usize = 4;
/// So many functions that are dear to compute are kept for the passes that follow.
pub(super) const KEPT: usize = 4;

/// A row body with its attributes: `I` inputs, `X` positions, `O` outputs.
pub trait Body<const I: usize, const X: usize, const O: usize> {
    /// Which inputs have an element for each of the row, rather than one for the whole row.
    const ALONG: [bool; I];
    /// The same of outputs.
    const GIVES: [bool; O];
    /// An upper bound of its reductions, at most [`MOST_REDUCTIONS`].
    const REDUCTIONS: usize;
    /// The least and the most passes that these may take, at most [`MOST_LEVELS`]: loops are compiled for all of them.
    const LEVELS: (usize, usize);

    /// Computes one element.
    fn eval<R: Row>(&self, inputs: [R; I], at: [R::Index; X]) -> [R; O];
}

/// The rows of one argument: those of the first row, and how many bytes the next one's are away.
#[derive(Clone, Copy, Debug)]
pub struct Operand<P> {
    /// The first element of the first row.
    pub data: P,
    /// In bytes.
    pub step: isize,
}

impl<T> Operand<*const T> {
    #[inline(always)]
    /// Its elements of a row.
    pub fn row(self, row: usize) -> *const T {
        self.data.wrapping_byte_offset(row as isize * self.step)
    }
}

impl<T> Operand<*mut T> {
    #[inline(always)]
    /// Its elements of a row.
    pub fn row(self, row: usize) -> *mut T {
        self.data.wrapping_byte_offset(row as isize * self.step)
    }
}

/// A position that no element of the row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Which of the positions.
    pub argument: usize,
    /// Its value.
    pub index: i64,
    /// The length of the row.
    pub len: usize,
}

/// Why rows can't be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A position is outside of its row.
    Outside(Outside),
    /// There are more reductions than the body was declared to have, or deeper ones.
    Reductions {
        /// How many there are.
        count: usize,
        /// How many depend on one another.
        levels: usize,
    },
    /// An output that has one number for each row differs from element to element.
    Varies(usize),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Outside(o) => write!(f, "index {} is outside of a row of {}", o.index, o.len),
            Wrong::Reductions { count, levels } => write!(
                f,
                "the body has {count} reductions, {levels} of which depend on one another; at most {MOST_REDUCTIONS} and \
                 {MOST_LEVELS} are supported"
            ),
            Wrong::Varies(k) => {
                write!(f, "output {k} has one number for each row by the shape clause, but the body gives a row")
            }
        }
    }
}

/// What one evaluation of the body reads and writes. Its cells are locals of one iteration of a loop: in the end they are
/// registers, or nothing.
pub(super) struct Scope<'a, T> {
    /// Reductions met so far.
    pub met: &'a Cell<usize>,
    /// Dear functions met so far.
    pub dear: &'a Cell<usize>,
    /// The results of reductions, as far as earlier passes have found them.
    pub known: &'a [T; MOST_REDUCTIONS],
    /// The arguments of reductions.
    pub argument: &'a [Cell<T>; MOST_REDUCTIONS],
    /// Their derivatives.
    pub tangent: &'a [Cell<T>; MOST_REDUCTIONS],
    /// What kind each reduction is, and how many passes it waits for.
    pub kind: &'a [Cell<(Reduction, usize)>; MOST_REDUCTIONS],
    /// What earlier passes kept for this position, or this pass does: the first of [`KEPT`] places, `count` apart.
    pub kept: *mut T,
    /// The reduction that is differentiated by.
    pub direction: usize,
    pub position: usize,
    pub count: usize,
}

/// Declares a [`Scope`] with fresh cells.
macro_rules! scope {
    ($scope:ident: $t:ty, known $known:expr, kept $kept:expr, direction $direction:expr, position $position:expr, count $count:expr) => {
        let (met, dear) = (Cell::new(0), Cell::new(0));
        let argument = [const { Cell::new(<$t>::ZERO) }; MOST_REDUCTIONS];
        let tangent = [const { Cell::new(<$t>::ZERO) }; MOST_REDUCTIONS];
        let kind = [const { Cell::new((Reduction::Sum, usize::MAX)) }; MOST_REDUCTIONS];
        let $scope = Scope {
            met: &met,
            dear: &dear,
            known: $known,
            argument: &argument,
            tangent: &tangent,
            kind: &kind,
            kept: $kept,
            direction: $direction,
            position: $position,
            count: $count,
        };
    };
}
pub(super) use scope;

/// A float that rows are computed in.
pub trait Computed: Float + Machine {
    /// 0, for initial values.
    const ZERO: Self;
}
impl Computed for f32 {
    const ZERO: f32 = 0.0;
}
impl Computed for f64 {
    const ZERO: f64 = 0.0;
}

/// What evaluating a body tells about it.
#[derive(Clone, Copy)]
pub(super) struct Structure {
    pub reductions: usize,
    pub levels: usize,
    pub kinds: [(Reduction, usize); MOST_REDUCTIONS],
    /// Dear functions that are kept.
    pub kept: usize,
}

impl Structure {
    /// Evaluates the body once.
    #[inline(always)]
    pub fn of<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
        body: &B,
    ) -> Result<Structure, Wrong> {
        let (known, mut kept) = ([T::ZERO; MOST_REDUCTIONS], [T::ZERO; KEPT]);
        scope!(scope: T, known &known, kept kept.as_mut_ptr(), direction usize::MAX, position 0, count 1);

        let mut x = [Lane::<T, 0>::outside(T::ZERO); I];
        for i in 0..I {
            x[i] = Lane::new(T::ZERO, B::ALONG[i], &scope);
        }
        let outputs = body.eval(x, [0; X]);
        match (0..O).find(|k| !B::GIVES[*k] && outputs[*k].varies()) {
            Some(k) => Err(Wrong::Varies(k)),
            None => Structure::seen(&scope, B::REDUCTIONS, B::LEVELS),
        }
    }

    /// Evaluates the body once at dual numbers.
    #[inline(always)]
    pub fn of_dual<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
        body: &B,
    ) -> Result<Structure, Wrong> {
        let (known, mut kept) = ([T::ZERO; MOST_REDUCTIONS], [T::ZERO; KEPT]);
        scope!(scope: T, known &known, kept kept.as_mut_ptr(), direction usize::MAX, position 0, count 1);
        let mut x = [Dual::constant_of(Lane::<T, 0>::outside(T::ZERO)); I];
        for i in 0..I {
            x[i] = Dual::constant_of(Lane::new(T::ZERO, B::ALONG[i], &scope));
        }
        let _ = body.eval(x, [0; X]);
        Structure::seen(&scope, B::REDUCTIONS, B::LEVELS)
    }

    /// The reductions of one pass.
    #[inline(always)]
    pub fn of_pass(&self, pass: usize) -> [Option<Reduction>; MOST_REDUCTIONS] {
        self.kinds.map(|(reduction, level)| (level == pass).then_some(reduction))
    }

    #[inline(always)]
    fn seen<T>(scope: &Scope<'_, T>, most: usize, levels: (usize, usize)) -> Result<Structure, Wrong> {
        let (reductions, kept) = (scope.met.get(), scope.dear.get().min(KEPT));
        let mut seen =
            Structure { reductions, levels: 0, kinds: [(Reduction::Sum, usize::MAX); MOST_REDUCTIONS], kept };
        for k in 0..reductions.min(MOST_REDUCTIONS) {
            seen.kinds[k] = scope.kind[k].get();
            seen.levels = seen.levels.max(seen.kinds[k].1 + 1);
        }
        if reductions > most || seen.levels < levels.0 || seen.levels > levels.1 {
            return Err(Wrong::Reductions { count: reductions, levels: seen.levels });
        }
        Ok(seen)
    }
}

/// Elements that are gathered side by side.
pub(super) const LANES: usize = 256;
/// Blocks of [`LANES`] that are gathered in order before going pairwise.
const RUN: usize = 32;

/// Partial results of several reductions: those of blocks of a row are combined pairwise, which is exact and always in the
/// same order. What is `None` isn't gathered.
pub(super) struct Gathered<T, const N: usize> {
    pub lanes: [[T; LANES]; N],
    /// How many lanes the row needs: a power of two.
    width: usize,
    stack: Vec<[T; N]>,
    blocks: usize,
}

impl<T: Computed, const N: usize> Gathered<T, N> {
    pub fn new() -> Self {
        Gathered { lanes: [[T::ZERO; LANES]; N], width: LANES, stack: Vec::new(), blocks: 0 }
    }

    /// Begins a row of `n` elements.
    #[inline(always)]
    pub fn begin(&mut self, kinds: &[Option<Reduction>; N], n: usize) {
        self.width = if n >= LANES { LANES } else { n.next_power_of_two() };
        self.clear(kinds);
        self.stack.clear();
        self.blocks = 0;
    }

    #[inline(always)]
    fn clear(&mut self, kinds: &[Option<Reduction>; N]) {
        for (lanes, kind) in self.lanes.iter_mut().zip(kinds) {
            if let Some(kind) = kind {
                lanes[..self.width].fill(kind.identity());
            }
        }
    }

    /// Another block of lanes is done.
    #[inline(always)]
    pub fn block(&mut self, kinds: &[Option<Reduction>; N]) {
        self.blocks += 1;
        if self.blocks.is_multiple_of(RUN) {
            self.push(kinds);
        }
    }

    #[inline(never)]
    fn push(&mut self, kinds: &[Option<Reduction>; N]) {
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
    fn folded(&self, kinds: &[Option<Reduction>; N]) -> [T; N] {
        let mut all = [T::ZERO; N];
        for k in 0..N {
            if let Some(kind) = kinds[k] {
                all[k] = fold(&self.lanes[k][..self.width], kind);
            }
        }
        all
    }

    /// The results of the row.
    #[inline(always)]
    pub fn finish(&self, kinds: &[Option<Reduction>; N]) -> [T; N] {
        let mut sum = self.folded(kinds);
        for left in self.stack.iter().rev() {
            sum = combined(kinds, left, &sum);
        }
        sum
    }
}

#[inline(always)]
fn combined<T: Computed, const N: usize>(kinds: &[Option<Reduction>; N], left: &[T; N], right: &[T; N]) -> [T; N] {
    let mut both = *right;
    for k in 0..N {
        if let Some(kind) = kinds[k] {
            both[k] = kind.combine(left[k], right[k]);
        }
    }
    both
}

/// All lanes in one; their number is a power of two.
#[inline(always)]
fn fold<T: Computed>(lanes: &[T], kind: Reduction) -> T {
    /// As many as are folded in registers.
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
