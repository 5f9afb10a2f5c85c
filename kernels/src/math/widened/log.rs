//! Logarithms: ln 2ᵏm = k ln 2 + 2 atanh s with s = (m − 1) / (m + 1).

use std::f64::consts::LN_2;

use super::exp::exp;
use crate::math::binary::Binary64;
use crate::math::bits::exponent_and_mantissa;
use crate::math::polynomial::polynomial;

/// 2 atanh(s) / s by s² over |s| ≤ (√2 − 1) / (√2 + 1).
const LOG: [f64; 4] = [1.9999999986195787, 0.6666681609450558, 0.3997477862745383, 0.299260938934902];

/// The same, with the accuracy of a double.
const EXACT_LOG: [f64; 8] = [
    2.0,
    0.6666666666666765,
    0.3999999999929753,
    0.28571428761653167,
    0.22222196955516765,
    0.18183636873414963,
    0.1531239613849751,
    0.14811027521681397,
];

/// ln(1 + f) for √½ ≤ 1 + f < √2
#[inline(always)]
fn log_near_one<F: Binary64>(f: F) -> F {
    log_by(f, &LOG)
}

#[inline(always)]
fn log_by<F: Binary64, const N: usize>(f: F, table: &[f64; N]) -> F {
    let s = f / (f + 2.0);
    s * polynomial(s * s, table)
}

/// The logarithm for arguments that are not positive or not finite, else `log`.
#[inline(always)]
fn with_ends<F: Binary64>(x: F, log: F) -> F {
    let log = F::select(x.less(F::of(f64::INFINITY)), log, x);
    let log = F::select(x.equal(F::of(0.0)), F::of(f64::NEG_INFINITY), log);
    F::select(x.less(F::of(0.0)), F::of(f64::NAN), log)
}

/// For functions that need more digits of a logarithm than a single has.
#[inline(always)]
pub(super) fn exact_log<F: Binary64>(x: F) -> F {
    let (k, m) = exponent_and_mantissa(x);
    with_ends(x, k * LN_2 + log_by(m - 1.0, &EXACT_LOG))
}

/// If the exponent of 1 + x is 0, f is x itself, with all its digits.
#[inline(always)]
pub fn log1p<F: Binary64>(x: F) -> F {
    let (k, m) = exponent_and_mantissa(x + 1.0);
    let f = F::select(k.equal(F::of(0.0)), x, m - 1.0);
    with_ends(x + 1.0, k * LN_2 + log_near_one(f)).copysign(x)
}

#[inline(always)]
pub fn logaddexp<F: Binary64>(x: F, y: F) -> F {
    // Two equal infinities have no difference.
    let gap = F::select(x.equal(y), F::of(0.0), (x - y).abs());
    F::select(y.less(x), x, y) + log1p(exp(-gap))
}
