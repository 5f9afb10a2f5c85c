//! Trigonometric functions, in quarter turns from the nearest multiple of π/2.

use crate::math::binary::{Binary64, Word};
use crate::math::bits::{flip, is_even, nearest};
use crate::math::polynomial::polynomial;

/// sin(π/2 f) / f by f² over |f| ≤ ½.
const SIN: [f64; 5] =
    [1.5707963267877403, -0.6459640960997497, 0.0796925817778131, -0.004681260151252867, 0.0001581940106231657];

/// cos(π/2 f) by f² over |f| ≤ ½.
const COS: [f64; 5] =
    [0.9999999999439018, -1.233700539555302, 0.2536691823244115, -0.020859933826286123, 0.0009033577084340175];

/// 2/π, without the digits that contribute only multiples of 4 for singles from 2²³ 2²⁷ᵏ on, which are multiples of
/// 2²⁷ᵏ. For each k: the leading 28 bits, so that the product with a single is exact; the next 28; and the rest.
const TWO_OVER_PI: [[f64; 3]; 4] = [
    [0.6366197690367699, 3.330811459978378e-09, 1.6153797880892852e-17],
    [-4.11976913694545e-09, 1.6153797803925804e-17, 7.696704864039572e-26],
    [7.166494882838848e-17, 2.83762200841452e-25, 9.372006544409767e-34],
    [-5.434184117115757e-25, 9.372006500203007e-34, 4.420676015940119e-42],
];

/// The part of the digits for a range. They are constants here; loads from the table wouldn't vectorize.
#[inline(always)]
fn digits<F: Binary64, const CHUNK: usize>((far, farther, farthest): (F::Mask, F::Mask, F::Mask)) -> F {
    let near = F::select(far, F::of(const { TWO_OVER_PI[1][CHUNK] }), F::of(const { TWO_OVER_PI[0][CHUNK] }));
    let beyond = F::select(farthest, F::of(const { TWO_OVER_PI[3][CHUNK] }), F::of(const { TWO_OVER_PI[2][CHUNK] }));
    F::select(farther, beyond, near)
}

/// `x = π/2 (n + f)` with an integer n, whose low bits are kept, and |f| ≤ ½.
///
/// After Payne and Hanek (1983), digits of 2/π that only contribute whole turns are not multiplied. Four selections of
/// digits are enough for all singles, and a double holds each product.
#[inline(always)]
fn quarters<F: Binary64>(x: F) -> (F::Bits, F) {
    let from = |exponent: u32| F::of((1u128 << exponent) as f64).less_equal(x.abs());
    let range = (from(50), from(77), from(104));
    let (first, second, third) = (digits::<F, 0>(range), digits::<F, 1>(range), digits::<F, 2>(range));
    let (p, q) = (x * first, x * second);
    let (np, nq) = (nearest(p).value, nearest(q).value);
    let (p, q) = (p - np, q - nq);
    let carry = nearest(p + q).value;
    let f = ((p - carry) + q) + x * third;
    (nearest(np + nq + carry).bits, f)
}

/// sin and cos of π/2 f
#[inline(always)]
fn sin_cos<F: Binary64>(f: F) -> (F, F) {
    let square = f * f;
    (f * polynomial(square, &SIN), polynomial(square, &COS))
}

/// sin π/2 (n + f)
#[inline(always)]
fn sin_of_quarters<F: Binary64>(n: F::Bits, f: F) -> F {
    let (sin, cos) = sin_cos(f);
    flip(F::select(is_even::<F>(n), sin, cos), n, 1)
}

#[inline(always)]
pub fn sin<F: Binary64>(x: F) -> F {
    let (n, f) = quarters(x);
    sin_of_quarters(n, f)
}

#[inline(always)]
pub fn cos<F: Binary64>(x: F) -> F {
    let (n, f) = quarters(x);
    sin_of_quarters(n.wrapping_add(Word::of(1)), f)
}

#[inline(always)]
pub fn tan<F: Binary64>(x: F) -> F {
    let (n, f) = quarters(x);
    let (sin, cos) = sin_cos(f);
    let even = is_even::<F>(n);
    F::select(even, sin, -cos) / F::select(even, cos, sin)
}
