//! Rows: bodies that use one element of a row, and reductions over all of them.
//!
//! A body that is generic over [`Row`], or [`IntRow`], is written for one element; `x.sum()` is a number that all elements share. It
//! runs over memory by *pass-indexed evaluation*: the same body is inlined once for each pass over the row. In pass
//! `P`, every value that needs fewer than `P` passes is known. The reductions whose argument has just become known are
//! computed; what depends on them is dead code to the compiler. A softmax, written in two lines, thus compiles to three
//! loops: the maximum, the sum of exponentials, the quotients. `lane` has the number type that bodies run with;
//! [`forward`](forward()) and [`vjp`](vjp()) run the passes.

// Loops use indices: the closures of an iterator are functions that are compiled for the baseline.
#![allow(clippy::needless_range_loop)]

#[cfg(feature = "engine")]
mod accumulators;
mod adjoints;
mod body;
mod forward;
mod function;
mod gradient;
mod lane;
mod operands;
mod partials;
mod pass;
mod place;
#[cfg(feature = "engine")]
mod reduced;
mod scope;
#[cfg(feature = "engine")]
mod side_by_side;
mod structure;
mod sweep;
mod together;

pub use body::{Body, Computed, ComputedFloat, MOST_LEVELS, MOST_REDUCTIONS, OutOfRange, RowError, Rows};
pub use forward::forward;
pub use function::RowFunction;
pub use gradient::{Cotangents, vjp};
pub use lane::{Lane, LaneMask};
pub use together::Together;
#[cfg(feature = "engine")]
pub(crate) use {
    accumulators::{Accumulators, add_rest},
    reduced::{by_kind, reduced},
    sweep::{LANES, Lanes, Sections},
};

use crate::number::scalar::{Float, Int, Machine, Num, Real, lit};
use crate::reduce::scan::cumsum_in_place;

/// A reduction over all elements of a row. The result is one number or, for a running reduction, one number per
/// element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum; 0 if there are no elements.
    Sum,
    /// The product; 1 if there are no elements.
    Prod,
    /// The largest element, or NaN if there is one; −∞ if there are no elements.
    Max,
    /// The smallest element, or NaN if there is one; +∞ if there are no elements.
    Min,
    /// For each element, the sum of the elements up to it.
    Cumsum,
    /// For each element, the sum of the elements from it on.
    ReverseCumsum,
}

impl Reduction {
    /// All reductions with their names.
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

    /// The reduction with this name.
    pub fn named(name: &str) -> Option<Reduction> {
        Reduction::ALL.into_iter().find(|(_, word)| *word == name).map(|(reduction, _)| reduction)
    }

    /// True if it returns a number for each element.
    #[inline(always)]
    pub fn is_running(self) -> bool {
        matches!(self, Reduction::Cumsum | Reduction::ReverseCumsum)
    }

    /// Calls `f` with the row in the direction of this reduction: a reversed reduction reverses the row before and
    /// after.
    pub(crate) fn along<T>(self, row: &mut [T], f: impl FnOnce(&mut [T])) {
        let is_reverse = self == Reduction::ReverseCumsum;
        if is_reverse {
            row.reverse();
        }
        f(row);
        if is_reverse {
            row.reverse();
        }
    }

    /// Replaces the elements of a row by their running sums.
    pub(crate) fn accumulate<T: Machine + Num>(self, row: &mut [T]) {
        self.along(row, cumsum_in_place);
    }

    /// The result for no elements.
    #[inline(always)]
    pub fn identity<T: Real>(self) -> T {
        match self {
            Reduction::Sum | Reduction::Cumsum | Reduction::ReverseCumsum => T::zero(),
            Reduction::Prod => T::one(),
            // For integers, this constant is the least, or the largest, integer.
            Reduction::Max => lit(f64::NEG_INFINITY),
            Reduction::Min => lit(f64::INFINITY),
        }
    }

    /// Combines two results.
    #[inline(always)]
    pub fn combine<T: Real>(self, a: T, b: T) -> T {
        match self {
            Reduction::Sum | Reduction::Cumsum | Reduction::ReverseCumsum => a + b,
            Reduction::Prod => a * b,
            Reduction::Max => a.maximum(b),
            Reduction::Min => a.minimum(b),
        }
    }
}

/// The functions that rows of floats and rows of integers share: those of [`Row`] and [`IntRow`]. A method of an element applies to each
/// element; a reduction over the row has the same result for each of its elements.
pub trait RealRow: Real {
    /// A position in the row: one integer for each row.
    type Index: Copy;

    /// Reduces all elements; a running reduction uses those up to, or from, each element.
    fn reduce(self, reduction: Reduction) -> Self;
    /// A function of whole rows. Precompiled bodies do not have it.
    fn of_row<const N: usize>(function: RowFunction, rows: [Self; N]) -> Self;
    /// The number of elements in the row.
    fn count(self) -> Self;
    /// The index of this element, from 0.
    fn position(self) -> Self;
    /// True if the index of this element is `index`.
    fn stands_at(self, index: Self::Index) -> Self::Mask;
    /// This number as a position in a row. Precompiled bodies do not have it.
    fn to_index(self) -> Self::Index;

    /// The sum of all elements; 0 for an empty row.
    #[inline(always)]
    fn sum(self) -> Self {
        self.reduce(Reduction::Sum)
    }
    /// The largest element, or NaN if there is one; −∞ for an empty row of floats. Ties share the gradient evenly.
    #[inline(always)]
    fn max(self) -> Self {
        self.reduce(Reduction::Max)
    }
    /// The smallest element, or NaN if there is one; +∞ for an empty row of floats. Ties share the gradient evenly.
    #[inline(always)]
    fn min(self) -> Self {
        self.reduce(Reduction::Min)
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
    /// The element `places` before this one, or after it if `places` is negative; 0 outside of the row.
    #[inline(always)]
    fn shift(self, places: i64) -> Self {
        Self::of_row(RowFunction::Shift(places), [self])
    }
    /// The elements in reverse order.
    #[inline(always)]
    fn reverse(self) -> Self {
        Self::of_row(RowFunction::Reverse, [self])
    }
    /// The linear recurrence `hᵢ = aᵢ hᵢ₋₁ + xᵢ` of this row `x` with the coefficients `a`. It begins with `h₀ = x₀`, so the first
    /// coefficient is not used.
    #[inline(always)]
    fn recurrence(self, coefficients: Self) -> Self {
        Self::of_row(RowFunction::Recurrence, [self, coefficients])
    }
    /// The linear recurrence from the end: `hᵢ = aᵢ hᵢ₊₁ + xᵢ`. The last coefficient is not used.
    #[inline(always)]
    fn reverse_recurrence(self, coefficients: Self) -> Self {
        self.reverse().recurrence(coefficients.reverse()).reverse()
    }
    /// The results of `step` from the first element on: `hᵢ = step(hᵢ₋₁, xᵢ)`, and `h₀ = x₀`. Several rows that a step needs together are a tuple.
    /// The step takes and returns single elements. It may use other values of the body: those of the element at `i`. Precompiled bodies do not
    /// have it.
    ///
    /// ```
    /// use minitensor_kernels::{Float, Row};
    ///
    /// /// `yᵢ = (1 - a) yᵢ₋₁ + a xᵢ`: exponential smoothing.
    /// fn smooth<R: Row>(x: R, a: R) -> R {
    ///     R::scan(x, |before, x| before + a * (x - before))
    /// }
    ///
    /// /// The running mean and the sum of squared distances from it, by Welford's method.
    /// fn moments<R: Row>(x: R) -> (R, R) {
    ///     let (n, mean, m2) = R::scan((R::one(), x, R::zero()), |(n, mean, m2), (_, x, _)| {
    ///         let (count, distance) = (n + R::one(), x - mean);
    ///         let next = mean + distance / count;
    ///         (count, next, m2 + distance * (x - next))
    ///     });
    ///     (mean, m2 / n)
    /// }
    /// ```
    fn scan<X: Together<Self>>(rows: X, step: impl Fn(X, X) -> X) -> X;
    /// The product of all elements up to this one. Its gradient is correct even if elements are 0.
    #[inline(always)]
    fn cumprod(self) -> Self {
        let is_first = self.position().equal(Self::zero());
        Self::select(is_first, self, Self::zero().negative()).recurrence(self)
    }
    /// The largest element up to this one, or NaN if there is one. The gradient belongs to the last of equal elements.
    #[inline(always)]
    fn cummax(self) -> Self {
        Self::of_row(RowFunction::Cummax, [self])
    }
    /// The positions of the elements in ascending order. Equal elements keep their order, and NaN comes last.
    #[inline(always)]
    fn argsort(self) -> Self {
        Self::of_row(RowFunction::Argsort, [self.detach()])
    }
    /// The elements in ascending order. NaN comes last.
    #[inline(always)]
    fn sort(self) -> Self {
        Self::of_row(RowFunction::Take, [self, self.argsort()])
    }
    /// The sum of the elements whose `index` is this position, and 0 if there are none: the reverse of [`take`](Row::take). An
    /// element whose `index` is no position is left out.
    #[inline(always)]
    fn put(self, index: Self) -> Self {
        Self::of_row(RowFunction::Put, [self, index.detach()])
    }
    /// True if the mask is true for at least one element.
    #[inline(always)]
    fn any(mask: Self::Mask) -> Self::Mask {
        Self::select(mask, Self::one(), Self::zero()).max().greater(Self::zero())
    }
    /// True if the mask is true for all elements.
    #[inline(always)]
    fn all(mask: Self::Mask) -> Self::Mask {
        Self::select(mask, Self::one(), Self::zero()).min().greater(Self::zero())
    }
    /// The index of the first NaN or, without any, of the first largest element.
    #[inline(always)]
    fn argmax(self) -> Self {
        let hit = self.equal(self.max()) | self.isnan();
        Self::select(hit, self.position(), self.count()).min().detach()
    }
    /// The index of the first NaN or, without any, of the first smallest element.
    #[inline(always)]
    fn argmin(self) -> Self {
        let hit = self.equal(self.min()) | self.isnan();
        Self::select(hit, self.position(), self.count()).min().detach()
    }
    /// The element at the index.
    #[inline(always)]
    fn at(self, index: Self::Index) -> Self {
        Self::select(self.stands_at(index), self, Self::zero()).sum()
    }
    /// The sum of the products with the elements of another row.
    #[inline(always)]
    fn dot(self, other: Self) -> Self {
        (self * other).sum()
    }
}

/// An element of a row of floats, with the methods of [`Float`] and [`RealRow`].
///
/// ```
/// use minitensor_kernels::{Float, Row};
///
/// fn softmax<R: Row>(x: R) -> R {
///     let e = (x - x.max()).exp();
///     e / e.sum()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a row",
    label = "not a row",
    note = "only the body of an op with `R: Row` and a `shape` clause can reduce rows"
)]
pub trait Row: RealRow + Float {
    /// The mean of all elements; NaN for an empty row.
    #[inline(always)]
    fn mean(self) -> Self {
        self.sum() / self.count()
    }
    /// The product of all elements; 1 for an empty row. Its derivatives up to the third are correct even if elements are 0.
    #[inline(always)]
    fn prod(self) -> Self {
        let is_zero = self.equal(Self::zero());
        let others = Self::select(is_zero, Self::one(), self).reduce(Reduction::Prod);
        let zeros = Self::select(is_zero, Self::one(), Self::zero()).sum();
        let powers = |n: i64| Self::select(is_zero, self.powi(n), Self::zero()).sum();
        // The product of one, two or three zeros by Newton's identities. The value is 0, but the derivatives are not.
        let (p1, p2, p3) = (powers(1), powers(2), powers(3));
        let two = (p1 * p1 - p2) * lit::<Self>(0.5);
        let three = (p1 * p1 * p1 - lit::<Self>(3.0) * p1 * p2 + lit::<Self>(2.0) * p3) * lit::<Self>(1.0 / 6.0);
        let is = |n: i64| zeros.equal(lit(n));
        let many = Self::select(is(3), three, p1.detach());
        let product = Self::select(is(1), p1, Self::select(is(2), two, many));
        Self::select(is(0), others, others * product)
    }
    /// The smallest element up to this one, or NaN if there is one. The gradient belongs to the last of equal elements.
    #[inline(always)]
    fn cummin(self) -> Self {
        -(-self).cummax()
    }
    /// The element at the position `index`, which may differ from element to element; NaN if there is no such position.
    #[inline(always)]
    fn take(self, index: Self) -> Self {
        let index = index.detach();
        let is_position = index.greater_equal(Self::zero()) & index.less(index.count()) & index.equal(index.floor());
        Self::select(is_position, Self::of_row(RowFunction::Take, [self, index]), Self::nan())
    }
    /// The variance: the sum of squared distances from the mean, divided by `count − correction`.
    #[inline(always)]
    fn var(self, correction: Self) -> Self {
        let count = self.count() - correction;
        (self - self.mean()).square().sum() / Self::select(count.less(lit(0)), Self::zero(), count)
    }
    /// The standard deviation, the square root of the variance. The gradient at equal elements is 0.
    #[inline(always)]
    fn std(self, correction: Self) -> Self {
        let var = self.var(correction);
        Self::select(var.equal(Self::zero()), var, var.sqrt())
    }
    /// `ln Σ eˣ`, without overflow.
    #[inline(always)]
    fn logsumexp(self) -> Self {
        let top = self.max().detach();
        // If the maximum is infinite, no shift is needed: the result is that infinity.
        let shift = Self::select(top.isfinite(), top, Self::zero());
        (self - shift).exp().sum().log() + shift
    }
}

/// An element of a row of integers, with the methods of [`Int`] and [`RealRow`]. Rows of integers are computed in 64 bits: those of
/// `uint64` in `uint64`, all others in `int64`. Arithmetic wraps.
///
/// ```
/// use minitensor_kernels::IntRow;
///
/// fn ranks<R: IntRow>(x: R) -> R {
///     x.argsort().argsort()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a row of integers",
    label = "not a row of integers",
    note = "only the body of an op with `R: IntRow` and a `shape` clause can reduce rows of integers"
)]
pub trait IntRow: RealRow + Int {
    /// The product of all elements; 1 for an empty row.
    #[inline(always)]
    fn prod(self) -> Self {
        self.reduce(Reduction::Prod)
    }
    /// The smallest element up to this one.
    #[inline(always)]
    fn cummin(self) -> Self {
        // `!x` reverses the order of all integers; `-x` does not change the least one.
        !(!self).cummax()
    }
    /// The element at the position `index`, which may differ from element to element; 0 if there is no such position.
    #[inline(always)]
    fn take(self, index: Self) -> Self {
        Self::of_row(RowFunction::Take, [self, index])
    }
}
