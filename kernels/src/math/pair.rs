//! Unevaluated sums of two doubles, which represent one number with twice the digits (Dekker, 1971).

use super::binary::{Binary64, Word};

/// `high + low`, where `low` is at most about one unit in the last place of `high`.
#[derive(Clone, Copy)]
pub struct Pair<F> {
    /// The rounded number.
    pub high: F,
    /// The rounding error.
    pub low: F,
}

/// A pair of these two parts.
#[inline(always)]
pub fn pair<F: Binary64>(high: F, low: F) -> Pair<F> {
    Pair { high, low }
}

/// `a + b` exactly, for |a| ≥ |b|.
#[inline(always)]
pub fn ordered_sum<F: Binary64>(a: F, b: F) -> Pair<F> {
    let sum = a + b;
    pair(sum, b - (sum - a))
}

/// `a + b` exactly (Knuth).
#[inline(always)]
pub fn sum<F: Binary64>(a: F, b: F) -> Pair<F> {
    let sum = a + b;
    let of_b = sum - a;
    pair(sum, (a - (sum - of_b)) + (b - of_b))
}

/// `a · b`, to 105 bits. It uses no fused product, which only some levels have.
#[inline(always)]
pub fn product<F: Binary64>(a: F, b: F) -> Pair<F> {
    let high = a * b;
    let ((a, a_rest), (b, b_rest)) = (halves(a), halves(b));
    pair(high, ((a * b - high) + (a * b_rest + a_rest * b)) + a_rest * b_rest)
}

/// `a · b` exactly, if no part is denormal.
#[inline(always)]
pub fn fused_product<F: Binary64>(a: F, b: F) -> Pair<F> {
    let high = a * b;
    pair(high, a.mul_add(b, -high))
}

/// `a² / 2`, whose high part has at most 52 bits.
#[inline(always)]
pub fn half_square<F: Binary64>(a: F) -> Pair<F> {
    let (high, low) = halves(a);
    pair(high * 0.5 * high, (a + high) * 0.5 * low)
}

/// The leading 26 bits, and the remaining ones.
#[inline(always)]
fn halves<F: Binary64>(x: F) -> (F, F) {
    let high = F::from_bits(x.to_bits() & Word::of(!0x7FF_FFFF));
    (high, x - high)
}

impl<F: Binary64> Pair<F> {
    /// The nearest double.
    #[inline(always)]
    pub fn value(self) -> F {
        self.high + self.low
    }

    /// `self + x`
    #[inline(always)]
    pub fn plus(self, x: F) -> Pair<F> {
        let sum = sum(self.high, x);
        ordered_sum(sum.high, sum.low + self.low)
    }

    /// `self · x`
    #[inline(always)]
    pub fn times(self, x: F) -> Pair<F> {
        let product = product(self.high, x);
        pair(product.high, product.low + self.low * x)
    }

    /// `self · 2ⁿ`; `scale` is 2ⁿ.
    #[inline(always)]
    pub fn scaled(self, scale: F) -> Pair<F> {
        pair(self.high * scale, self.low * scale)
    }

    /// `self / divisor`, by one division and its remainder.
    #[inline(always)]
    pub fn over(self, divisor: Pair<F>) -> Pair<F> {
        let quotient = self.high / divisor.high;
        let taken = product(quotient, divisor.high);
        let rest = ((self.high - taken.high) - taken.low) + (self.low - quotient * divisor.low);
        pair(quotient, rest / divisor.high)
    }

    /// `√self`; of 0 it is 0.
    #[inline(always)]
    pub fn root(self) -> Pair<F> {
        let root = self.high.sqrt();
        let taken = product(root, root);
        let rest = ((self.high - taken.high) - taken.low) + self.low;
        let low = rest / (root + root);
        pair(root, F::select(root.equal(F::of(0.0)), F::of(0.0), low))
    }
}
