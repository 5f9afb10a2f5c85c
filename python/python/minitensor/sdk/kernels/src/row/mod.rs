//! Rows: bodies that see one element of a row, and what is gathered from all of them.
//!
//! A body generic over [`Row`] is written as if for one element; `x.sum()` is a number that all elements share. It runs
//! over memory by *pass-indexed evaluation*: the same body is inlined once for each pass over the row. In pass `P`
//! everything that takes fewer than `P` passes to know is known, a reduction whose argument is just known is
//! gathered, and what comes after it is dead code to the compiler. So softmax, written in two lines, becomes three loops:
//! the largest element, the sum of exponentials, the quotients. [`lane`] is the number that bodies are run at,
//! [`forward`](forward()) and [`vjp`](vjp()) make the passes.

// Arrays are gone through by index: an iterator's closures are functions of the lowest SIMD level.
#![allow(clippy::needless_range_loop)]

mod adjoints;
mod body;
mod forward;
mod gathered;
mod gradient;
mod lane;
mod pass;
mod scope;
mod slopes;

pub use body::{Body, Computed, MOST_LEVELS, MOST_REDUCTIONS, Operand, Outside, Wrong};
pub use forward::forward;
pub use gradient::{Cotangents, vjp};
pub use lane::{Lane, LaneMask};

use crate::scalar::{Float, Machine, Num, lit};
use crate::scan::cumsum_in_place;

/// What is gathered from all elements of a row: one number or, where it is running, as many as there are elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum; 0 of none.
    Sum,
    /// Their product; 1 of none.
    Prod,
    /// The largest, NaN if there is one; −∞ of none.
    Max,
    /// The smallest, NaN if there is one; +∞ of none.
    Min,
    /// The sums of the elements up to each one.
    Cumsum,
    /// The sums of the elements from each one on.
    ReverseCumsum,
}

impl Reduction {
    /// All there are, with their names.
    pub const ALL: [(Reduction, &'static str); 6] = [
        (Reduction::Sum, "sum"),
        (Reduction::Prod, "prod"),
        (Reduction::Max, "max"),
        (Reduction::Min, "min"),
        (Reduction::Cumsum, "cumsum"),
        (Reduction::ReverseCumsum, "reverse_cumsum"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Reduction::ALL[self as usize].1
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Reduction> {
        Reduction::ALL.into_iter().find(|(_, word)| *word == name).map(|(reduction, _)| reduction)
    }

    /// Whether it gives a number for each element.
    #[inline(always)]
    pub fn is_running(self) -> bool {
        matches!(self, Reduction::Cumsum | Reduction::ReverseCumsum)
    }

    /// Goes along a row in the direction that this gathers in.
    pub(crate) fn along<T>(self, row: &mut [T], go: impl FnOnce(&mut [T])) {
        let is_reverse = self == Reduction::ReverseCumsum;
        if is_reverse {
            row.reverse();
        }
        go(row);
        if is_reverse {
            row.reverse();
        }
    }

    /// The running sums of a row, instead of its elements.
    pub(crate) fn accumulate<T: Machine + Num>(self, row: &mut [T]) {
        self.along(row, cumsum_in_place);
    }

    /// What it gives for no element at all.
    #[inline(always)]
    pub fn identity<T: Float>(self) -> T {
        match self {
            Reduction::Sum | Reduction::Cumsum | Reduction::ReverseCumsum => T::zero(),
            Reduction::Prod => T::one(),
            Reduction::Max => -T::infinity(),
            Reduction::Min => T::infinity(),
        }
    }

    /// Of two.
    #[inline(always)]
    pub fn combine<T: Float>(self, a: T, b: T) -> T {
        match self {
            Reduction::Sum | Reduction::Cumsum | Reduction::ReverseCumsum => a + b,
            Reduction::Prod => a * b,
            Reduction::Max => a.maximum(b),
            Reduction::Min => a.minimum(b),
        }
    }
}

/// An element of a row of floats. All of [`Float`] is done element by element; what is gathered from the whole row is
/// the same for each of its elements.
///
/// ```
/// use minitensor_kernels::{Float, Row};
///
/// fn softmax<R: Row>(x: R) -> R {
///     let e = (x - x.max()).exp();
///     e / e.sum()
/// }
/// ```
pub trait Row: Float {
    /// A position along the row: an integer for each row.
    type Index: Copy;

    /// Gathers all elements, or what stands before or after each of them.
    fn reduce(self, reduction: Reduction) -> Self;
    /// How many elements the row has.
    fn count(self) -> Self;
    /// Where this element stands, from 0.
    fn position(self) -> Self;
    /// Whether this element stands there.
    fn stands_at(self, index: Self::Index) -> Self::Mask;
    /// The same number, that gradients don't flow through.
    fn detach(self) -> Self;

    /// The sum of all elements; 0 of an empty row.
    #[inline(always)]
    fn sum(self) -> Self {
        self.reduce(Reduction::Sum)
    }
    /// Their mean; NaN of an empty row.
    #[inline(always)]
    fn mean(self) -> Self {
        self.sum() / self.count()
    }
    /// The largest, NaN if there is one; −∞ of an empty row. Ties share the gradient evenly.
    #[inline(always)]
    fn max(self) -> Self {
        self.reduce(Reduction::Max)
    }
    /// The smallest, NaN if there is one; +∞ of an empty row. Ties share the gradient evenly.
    #[inline(always)]
    fn min(self) -> Self {
        self.reduce(Reduction::Min)
    }
    /// The product of all elements; 1 of an empty row. Its gradient is right where elements are 0.
    #[inline(always)]
    fn prod(self) -> Self {
        let is_zero = self.equal(Self::zero());
        let others = Self::select(is_zero, Self::one(), self).reduce(Reduction::Prod);
        let zeros = Self::select(is_zero, Self::one(), Self::zero()).sum();
        // 0, and its derivative by the only zero is 1.
        let zero = Self::select(is_zero, self, Self::zero()).sum();
        let none = zeros.equal(Self::zero());
        let one = zeros.equal(Self::one());
        Self::select(none, others, Self::select(one, others * zero, others.detach() * zero.detach()))
    }
    /// The sum of all elements up to this one.
    #[inline(always)]
    fn cumsum(self) -> Self {
        self.reduce(Reduction::Cumsum)
    }
    /// The sum of all elements from this one on.
    #[inline(always)]
    fn reverse_cumsum(self) -> Self {
        self.reduce(Reduction::ReverseCumsum)
    }
    /// Whether it holds for any element.
    #[inline(always)]
    fn any(mask: Self::Mask) -> Self::Mask {
        Self::select(mask, Self::one(), Self::zero()).max().greater(Self::zero())
    }
    /// Whether it holds for all elements.
    #[inline(always)]
    fn all(mask: Self::Mask) -> Self::Mask {
        Self::select(mask, Self::one(), Self::zero()).min().greater(Self::zero())
    }
    /// Where the largest element first stands, or the first NaN.
    #[inline(always)]
    fn argmax(self) -> Self {
        let found = self.equal(self.max()) | self.isnan();
        Self::select(found, self.position(), Self::infinity()).min().detach()
    }
    /// Where the smallest element first stands, or the first NaN.
    #[inline(always)]
    fn argmin(self) -> Self {
        let found = self.equal(self.min()) | self.isnan();
        Self::select(found, self.position(), Self::infinity()).min().detach()
    }
    /// The element that stands there.
    #[inline(always)]
    fn at(self, index: Self::Index) -> Self {
        Self::select(self.stands_at(index), self, Self::zero()).sum()
    }
    /// The sum of products with another row.
    #[inline(always)]
    fn dot(self, other: Self) -> Self {
        (self * other).sum()
    }
    /// The variance: the sum of squared distances from the mean, divided by `count − correction`.
    #[inline(always)]
    fn var(self, correction: Self) -> Self {
        let count = self.count() - correction;
        (self - self.mean()).square().sum() / Self::select(count.less(lit(0)), Self::zero(), count)
    }
    /// `ln Σ eˣ`, without overflow.
    #[inline(always)]
    fn logsumexp(self) -> Self {
        let top = self.max().detach();
        // Of infinities, what stays is the infinity itself.
        let shift = Self::select(top.isfinite(), top, Self::zero());
        (self - shift).exp().sum().log() + shift
    }
}
