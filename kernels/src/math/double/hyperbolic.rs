//! Hyperbolic functions.

use super::exp::mantissa;
use crate::math::binary::Binary64;
use crate::math::bits::{clamp, nearest, power_of_two};
use crate::math::pair::{Pair, pair, sum};
use crate::math::polynomial::polynomial;

/// (sinh x − x) / x³ by x² over |x| ≤ 1.
const SINH: [f64; 7] = [
    0.16666666666666669,
    0.008333333333333139,
    0.00019841269841437654,
    2.7557319155340915e-06,
    2.5052123398450672e-08,
    1.6057240318987106e-10,
    7.759313550554788e-13,
];

/// Half of `e^a / 2 + sign e^−a / 2`. It is halved because the sum may be finite even if e^a is not.
#[inline(always)]
fn half_sum<F: Binary64>(a: F, sign: f64) -> Pair<F> {
    let (m, n) = mantissa(clamp(a, 0.0, 710.5));
    let quarter = m.scaled(power_of_two(nearest(n.value - 2.0)));
    let total = sum(quarter.high, F::of(sign * 0.0625) / quarter.high);
    pair(total.high, total.low + quarter.low)
}

#[inline(always)]
pub fn sinh<F: Binary64>(x: F) -> F {
    let a = x.abs();
    let square = x * x;
    let near = x + x * (square * polynomial(square, &SINH));
    F::select(a.less(F::of(1.0)), near, (half_sum(a, -1.0).value() * 2.0).copysign(x))
}

#[inline(always)]
pub fn cosh<F: Binary64>(x: F) -> F {
    half_sum(x.abs(), 1.0).value() * 2.0
}
