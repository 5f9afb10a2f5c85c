//! Unevaluated sums of two doubles, which represent one number with twice the digits (Dekker, 1971).

/// `high + low`, where `low` is at most about one unit in the last place of `high`.
#[derive(Clone, Copy)]
pub struct Pair {
    /// The rounded number.
    pub high: f64,
    /// The rounding error.
    pub low: f64,
}

/// A pair of these two parts.
#[inline(always)]
pub fn pair(high: f64, low: f64) -> Pair {
    Pair { high, low }
}

/// `a + b` exactly, for |a| ≥ |b|.
#[inline(always)]
pub fn ordered_sum(a: f64, b: f64) -> Pair {
    let sum = a + b;
    pair(sum, b - (sum - a))
}

/// `a + b` exactly (Knuth).
#[inline(always)]
pub fn sum(a: f64, b: f64) -> Pair {
    let sum = a + b;
    let of_b = sum - a;
    pair(sum, (a - (sum - of_b)) + (b - of_b))
}

/// `a · b`, to 105 bits. It uses no fused product, which only some levels have.
#[inline(always)]
pub fn product(a: f64, b: f64) -> Pair {
    let high = a * b;
    let ((a, a_rest), (b, b_rest)) = (halves(a), halves(b));
    pair(high, ((a * b - high) + (a * b_rest + a_rest * b)) + a_rest * b_rest)
}

/// `a · b` exactly, if no part is denormal.
#[inline(always)]
pub fn fused_product(a: f64, b: f64) -> Pair {
    let high = a * b;
    pair(high, a.mul_add(b, -high))
}

/// `a² / 2`, whose high part has at most 52 bits.
#[inline(always)]
pub fn half_square(a: f64) -> Pair {
    let (high, low) = halves(a);
    pair(0.5 * high * high, 0.5 * (a + high) * low)
}

/// The leading 26 bits, and the remaining ones.
#[inline(always)]
fn halves(x: f64) -> (f64, f64) {
    let high = f64::from_bits(x.to_bits() & !0x7FF_FFFF);
    (high, x - high)
}

impl Pair {
    /// The nearest double.
    #[inline(always)]
    pub fn value(self) -> f64 {
        self.high + self.low
    }

    /// `self + x`
    #[inline(always)]
    pub fn plus(self, x: f64) -> Pair {
        let sum = sum(self.high, x);
        ordered_sum(sum.high, sum.low + self.low)
    }

    /// `self · x`
    #[inline(always)]
    pub fn times(self, x: f64) -> Pair {
        let product = product(self.high, x);
        pair(product.high, product.low + self.low * x)
    }

    /// `self · 2ⁿ`; `scale` is 2ⁿ.
    #[inline(always)]
    pub fn scaled(self, scale: f64) -> Pair {
        pair(self.high * scale, self.low * scale)
    }

    /// `self / divisor`, by one division and its remainder.
    #[inline(always)]
    pub fn over(self, divisor: Pair) -> Pair {
        let quotient = self.high / divisor.high;
        let taken = product(quotient, divisor.high);
        let rest = ((self.high - taken.high) - taken.low) + (self.low - quotient * divisor.low);
        pair(quotient, rest / divisor.high)
    }

    /// `√self`; of 0 it is 0.
    #[inline(always)]
    pub fn root(self) -> Pair {
        let root = self.high.sqrt();
        let taken = product(root, root);
        let rest = ((self.high - taken.high) - taken.low) + self.low;
        let low = rest / (root + root);
        pair(root, if root == 0.0 { 0.0 } else { low })
    }
}
