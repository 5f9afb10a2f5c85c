//! The logarithm of the gamma function.

use super::log::exact_log as log;
use crate::math::binary::Binary64;
use crate::math::bits::nearest;
use crate::math::polynomial::polynomial;

/// x (ln Γ(x) − (x − ½) ln x + x − ½ ln 2π) by 1/x² for x ≥ 4.
const STIRLING: [f64; 10] = [
    0.08333333333333333,
    -0.0027777777777721717,
    0.0007936507905524902,
    -0.0005952374277524098,
    0.0008416770877629104,
    -0.0019127636893612604,
    0.006217120001116838,
    -0.02441623155405802,
    0.08682939093896672,
    -0.17680968960239593,
];

/// ln Γ(x) / ((x − 1) (x − 2)) by x − 3/2 over [¾, 2¼].
const MIDDLE: [f64; 16] = [
    0.483128950503763,
    -0.14595989569218054,
    0.06291140939366095,
    -0.03130850597129518,
    0.016796794752520803,
    -0.009425176094567054,
    0.005450660500381067,
    -0.0032168889281088656,
    0.0018946564062748293,
    -0.001137141169713443,
    0.0008129303090630191,
    -0.0005240912596688388,
    7.659384168156806e-05,
    -1.9598798437199428e-05,
    0.0002835192655241919,
    -0.00019133172235764114,
];

/// sin(πr) / r by r² over |r| ≤ ½. The first coefficient approximates π as part of the fit.
#[allow(clippy::approx_constant)]
const SIN_PI: [f64; 9] = [
    std::f64::consts::PI,
    -5.167712780049969,
    2.550164039877294,
    -0.5992645293187334,
    0.08214588656981067,
    -0.007370430478009855,
    0.00046629968498236845,
    -2.1903175544372265e-05,
    7.694623283920509e-07,
];

/// ½ ln 2π
const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;
/// ln π
const LN_PI: f64 = 1.144_729_885_849_400_2;

/// ln |Γ(x)|: a polynomial around the zeros at 1 and 2, and Stirling's series elsewhere, applied to Γ(x + 4) for x
/// below 4. Negative x use the reflection formula Γ(x) Γ(−x) = −π / (x sin πx). Nearly all digits of a double are
/// correct, because cancellation near the zeros between negative integers leaves few of them.
#[inline(always)]
pub fn lgamma<F: Binary64>(x: F) -> F {
    let a = x.abs();
    let low = a.less(F::of(4.0));
    let shifted = F::select(low, a + 4.0, a);
    let product = (a * (a + 3.0)) * ((a + 1.0) * (a + 2.0));
    let product = F::select(low, product, F::of(1.0));
    let inverse = F::of(1.0) / shifted;
    let series = polynomial(inverse * inverse, &STIRLING) * inverse;
    let stirling = (shifted - 0.5) * log(shifted) - shifted + HALF_LN_TWO_PI + series;
    // Singles from 2²³ on are integers.
    let r = F::select(a.less(F::of(8_388_608.0)), a, F::of(0.0));
    let r = (r - nearest(r).value).abs();
    let reflected = a * r * polynomial(r * r, &SIN_PI);
    let negative = x.less(F::of(0.0));
    let rest = log(F::select(negative, reflected / product, product));
    let far = F::select(negative, F::of(LN_PI) - stirling, stirling) - rest;
    // Adding 0 turns a zero positive.
    let middle = (x - 1.0) * (x - 2.0) * polynomial(x - 1.5, &MIDDLE) + 0.0;
    let result = F::select(F::of(0.75).less(x) & x.less(F::of(2.25)), middle, far);
    F::select(a.less(F::of(f64::INFINITY)), result, a)
}
