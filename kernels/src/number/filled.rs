//! [`Filled`]: the numbers that the arrays of a cell begin with.

use crate::number::scalar::Element;

/// A number that arrays are filled with: an element, or a `usize`.
#[doc(hidden)]
pub trait Filled {
    /// 0.
    fn zero() -> Self;
    /// 1.
    fn one() -> Self;
}

impl<T: Element> Filled for T {
    #[inline(always)]
    fn zero() -> Self {
        T::zero()
    }
    #[inline(always)]
    fn one() -> Self {
        T::one()
    }
}

impl Filled for usize {
    #[inline(always)]
    fn zero() -> Self {
        0
    }
    #[inline(always)]
    fn one() -> Self {
        1
    }
}
