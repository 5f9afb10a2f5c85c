//! The logarithm of the gamma function.

use std::f64::consts::PI;

use super::arc::FRAC_PI_2_REST;
use super::log::with_ends;
use super::power::exact_log;
use crate::math::binary::Binary64;
use crate::math::pair::{Pair, fused_product, ordered_sum, pair, sum};
use crate::math::polynomial::fused_polynomial;

/// x (ln Γ(x) − (x − ½) ln x + x − ½ ln 2π) by 1/x² for x ≥ 4.
const STIRLING: [f64; 12] = [
    0.08333333333333333,
    -0.002777777777777693,
    0.0007936507935830349,
    -0.0005952380739418382,
    0.000841747358995907,
    -0.0019171868835531607,
    0.006388806009336079,
    -0.028631458868881073,
    0.15190201649793902,
    -0.7813578082633245,
    3.0235986899637024,
    -6.0086556603337575,
];

/// ln Γ(x) / ((x − 1) (x − 2)) by the difference of x and the first number, over [¾, 2¼]. The first two coefficients
/// have two parts.
const MIDDLE: [f64; 32] = [
    1.5,
    0.4831289505409809,
    1.693974519078803e-17,
    -0.14595989591430605,
    1.8498145689504766e-18,
    0.06291140107456476,
    -0.03130848750101849,
    0.01679709863120955,
    -0.009425622447922494,
    0.005446457843385111,
    -0.00321207409584808,
    0.0019229161716300992,
    -0.0011644141149072908,
    0.0007115217515993168,
    -0.0004379994535077817,
    0.0002712824284394372,
    -0.00016885954092388147,
    0.00010558533842421621,
    -6.650623135243762e-05,
    4.1970462309303524e-05,
    -2.5649493526433328e-05,
    1.603155099060139e-05,
    -1.2686755652184553e-05,
    8.553340458143322e-06,
    -3.7100650523461633e-07,
    -4.671539295805214e-07,
    -6.847274778981206e-06,
    5.071353724680611e-06,
    3.3492749667046754e-06,
    -2.541028925272712e-06,
    -1.9772364890640734e-06,
    1.372921633143804e-06,
];

/// (sin πr − πr) / r³ by r² over |r| ≤ ½.
const SIN_PI: [f64; 8] = [
    -5.16771278004997,
    2.55016403987734,
    -0.5992645293203427,
    0.08214588659674217,
    -0.007370430719485916,
    0.00046630087305095976,
    -2.1906198002173346e-05,
    7.725694912471095e-07,
];

/// ½ ln 2π − ½ and its rounding error.
const CONSTANT: [f64; 2] = [0.4189385332046727, 1.6728209650585413e-17];
/// ln π
const LN_PI: f64 = 1.144_729_885_849_400_2;

/// ln Γ between ¾ and 2¼, around its zeros at 1 and 2.
#[inline(always)]
fn middle<F: Binary64>(x: F) -> F {
    let &[middle, first, first_rest, second, second_rest, ref higher @ ..] = &MIDDLE;
    let t = x - middle;
    let (first, second) = (F::of(first), F::of(second));
    let linear = second.mul_add(t, first);
    let curve = (t * t).mul_add(fused_polynomial(t, higher), t.mul_add(F::of(second_rest), F::of(first_rest)));
    let factor = ordered_sum(linear, curve);
    let factor_rest = second.mul_add(t, first - linear) + factor.low;
    let (one, two) = (x - 1.0, x - 2.0);
    let zeros = fused_product(one, two);
    let zeros_rest = one.mul_add(x - (two + 2.0), zeros.low);
    let high = zeros.high * factor.high;
    let low = zeros.high.mul_add(factor.high, -high);
    // Adding 0 turns a zero positive.
    high + zeros.high.mul_add(factor_rest, zeros_rest.mul_add(factor.high, low)) + 0.0
}

/// ln Γ(x) by Stirling's series for x ≥ 4: (x − ½) (ln x − 1) + ½ ln 2π − ½ + …
#[inline(always)]
fn stirling<F: Binary64>(x: Pair<F>) -> Pair<F> {
    let log = exact_log(x.high);
    let less = sum(log.high, F::of(-1.0));
    let less_rest = less.low + log.low;
    let factor = x.high - 0.5;
    let factor_rest = ((x.high - factor) - 0.5) + x.low;
    let product = fused_product(factor, less.high);
    let product_rest = factor.mul_add(less_rest, factor_rest.mul_add(less.high, product.low));
    let inverse = F::of(1.0) / x.high;
    let series = fused_polynomial(inverse * inverse, &STIRLING) * inverse;
    // The slope of ln Γ at the low part of x is ln x − ½ / x; ln x − 1 is already included.
    let slope = (inverse * 0.5).mul_add(-x.low, x.low);
    let total = sum(product.high, F::of(CONSTANT[0]));
    pair(total.high, total.low + (product_rest + (series + (slope + CONSTANT[1]))))
}

/// a (a + 1) (a + 2) (a + 3) = q (q + 2) with q = a (a + 3).
#[inline(always)]
fn four_factors<F: Binary64>(a: F) -> Pair<F> {
    let (square, triple) = (fused_product(a, a), fused_product(F::of(3.0), a));
    let q = sum(square.high, triple.high);
    let q = ordered_sum(q.high, q.low + (square.low + triple.low));
    let more = sum(q.high, F::of(2.0));
    let product = fused_product(q.high, more.high);
    pair(product.high, q.high.mul_add(more.low + q.low, q.low.mul_add(more.high, product.low)))
}

/// sin πr for |r| ≤ ½.
#[inline(always)]
fn sin_pi<F: Binary64>(r: F) -> Pair<F> {
    let square = r * r;
    let curve = square * fused_polynomial(square, &SIN_PI);
    let ratio = ordered_sum(F::of(PI), curve);
    let product = fused_product(r, ratio.high);
    pair(product.high, r.mul_add(ratio.low + 2.0 * FRAC_PI_2_REST, product.low))
}

/// ln |Γ(x)|: a polynomial around the zeros at 1 and 2, and Stirling's series elsewhere, applied to Γ(x + 4) for x
/// below 4. Negative x use the reflection formula Γ(x) Γ(−x) = −π / (x sin πx). Near the zeros between negative
/// integers the error is small relative to 1, but not relative to the result.
#[inline(always)]
pub fn lgamma<F: Binary64>(x: F) -> F {
    const TWO_52: f64 = 4_503_599_627_370_496.0;
    // For larger arguments the result is infinite.
    const LARGEST: f64 = 2.6e305;
    let a = x.abs();
    let low = a.less(F::of(4.0));
    let shifted = sum(a, F::of(4.0));
    let far = stirling(pair(F::select(low, shifted.high, a), F::select(low, shifted.low, F::of(0.0))));
    let product = four_factors(a);
    let product = pair(F::select(low, product.high, F::of(1.0)), F::select(low, product.low, F::of(0.0)));
    let r = F::select(a.less(F::of(TWO_52)), a - ((a + TWO_52) - TWO_52), F::of(0.0)).abs();
    let reflected = sin_pi(r);
    let rest = a * reflected.low;
    let reflected = fused_product(a, reflected.high);
    let reflected = pair(reflected.high, reflected.low + rest);
    // Beside 0, it makes no difference.
    let negative = x.less(F::of(-1e-30));
    let (above, below) =
        (F::select(negative, reflected.high, product.high), F::select(negative, product.high, F::of(1.0)));
    let inverse = F::of(1.0) / below;
    let quotient = above * inverse;
    let left = quotient.mul_add(-below, above);
    let (above_rest, below_rest) =
        (F::select(negative, reflected.low, product.low), F::select(negative, product.low, F::of(0.0)));
    let lacking = quotient.mul_add(-below_rest, above_rest + left) / above;
    let log = exact_log(quotient);
    let rest = pair(with_ends(quotient, log.high), log.low + lacking);
    let sign = F::select(negative, F::of(-1.0), F::of(1.0));
    let total = sum(sign * far.high, -rest.high);
    let low = total.low + (sign.mul_add(far.low, F::select(negative, F::of(LN_PI), F::of(0.0))) - rest.low);
    let far = F::select(rest.high.abs().less(F::of(f64::INFINITY)), total.high + low, -rest.high);
    let result = F::select(F::of(0.75).less(x) & x.less(F::of(2.25)), middle(x), far);
    F::select(a.less(F::of(LARGEST)), result, F::select(!x.equal(x), x, F::of(f64::INFINITY)))
}
