//! Trigonometric functions, after subtracting the nearest multiple of π/2.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

use super::arc::FRAC_PI_2_REST;
use crate::math::binary::{Binary64, Word};
use crate::math::bits::{constant_power, flip, is_even};
use crate::math::pair::{Pair, ordered_sum, pair};
use crate::math::polynomial::fused_polynomial;

/// (sin r − r + r³/6) / r⁵ by r² over |r| ≤ π/4.
const SIN: [f64; 5] = [
    0.008333333333329036,
    -0.00019841269834187426,
    2.7557315000596333e-06,
    -2.505093944522738e-08,
    1.5906275344347748e-10,
];

/// (cos r − 1 + r²/2) / r⁴ by r² over |r| ≤ π/4.
const COS: [f64; 6] = [
    0.0416666666666666,
    -0.0013888888888874146,
    2.480158728949594e-05,
    -2.75573143563793e-07,
    2.0875723832280983e-09,
    -1.135967718458996e-11,
];

/// The digits of 2/π, after 55 zeros.
const TWO_OVER_PI: [u64; 20] = [
    0x0000000000000145,
    0xF306DC9C882A53F8,
    0x4EAFA3EA69BB81B6,
    0xC52B3278872083FC,
    0xA2C757BD778AC36E,
    0x48DC74849BA5C00C,
    0x925DD413A32439FC,
    0x3BD63962534E7DD1,
    0x046BEA5D768909D3,
    0x38E04D68BEFC8273,
    0x23AC7306A673E939,
    0x08BF177BF250763F,
    0xF12FFFBC0B301FDE,
    0x5E2316B414DA3EDA,
    0x6CFD9E4F96136E9E,
    0x8C7ECD3CBFD45AEA,
    0x4F758FD7CBE2F67A,
    0x0E73EF14A525D4D7,
    0xF6BF623F1ABA10AC,
    0x06608DF8F6D757E1,
];

/// Four words of [`TWO_OVER_PI`] from the k-th on, for k < 16. The words are constants here; loads from the table
/// wouldn't vectorize.
#[inline(always)]
fn words<W: Word<Native = u64>>(k: W) -> [W; 4] {
    macro_rules! from {
        ($bit:literal of $words:ident, $($i:literal)*) => {{
            let clear = (k & W::of($bit)).equal(W::of(0));
            [$(W::select(clear, $words[$i], $words[$i + $bit])),*]
        }};
        ($bit:literal of const $words:ident, $($i:literal)*) => {{
            let clear = (k & W::of($bit)).equal(W::of(0));
            [$(W::select(clear, W::of(const { $words[$i] }), W::of(const { $words[$i + $bit] }))),*]
        }};
    }
    let words = from!(8 of const TWO_OVER_PI, 0 1 2 3 4 5 6 7 8 9 10);
    let words = from!(4 of words, 0 1 2 3 4 5 6);
    let words = from!(2 of words, 0 1 2 3 4);
    from!(1 of words, 0 1 2 3)
}

/// The low 32 bits in a word, as vector multiplications expect.
#[inline(always)]
fn low<W: Word<Native = u64>>(x: W) -> W {
    x & W::of(0xFFFF_FFFF)
}

/// An integer below 2³², times 2^`POWER`. It becomes bits of 2⁵² times that power, which is then subtracted.
#[inline(always)]
fn float<F: Binary64, const POWER: i64>(x: F::Bits) -> F {
    let shift = const { constant_power(52 + POWER) };
    F::from_bits(x | Word::of(shift.to_bits())) - shift
}

/// `x = π/2 (n + f)` with an integer n, whose low bits are kept, and |f| ≤ ½, for x ≥ ½.
///
/// After Payne and Hanek (1983), digits of 2/π that only contribute whole turns are not multiplied. 192 of the others
/// are.
#[inline(always)]
fn quarters<F: Binary64>(x: F) -> (F::Bits, Pair<F>) {
    let bits = x.to_bits();
    // Treats x as at least 1, so that there are 1024 cases.
    let below_one = bits.less(Word::of(1.0f64.to_bits()));
    let place = Word::select(below_one, Word::of(0), (bits >> 52).wrapping_sub(Word::of(1023)));
    let fraction = bits & Word::of((1 << 52) - 1) | Word::of(1 << 52);
    let fraction = Word::select(below_one, fraction, fraction << 1);
    let (upper, lower) = (fraction >> 32, low(fraction));
    let shift = place & Word::of(63);
    let words = words(place >> 6);
    let rest = F::Bits::of(63) - shift;
    let digits = |k: usize| words[k].shifted_left(shift) | (words[k + 1] >> 1).shifted_right(rest);
    let (a, b, c) = (digits(0), digits(1), digits(2));
    let digits = [a >> 32, low(a), b >> 32, low(b), c >> 32, low(c)];
    // The product in columns of 32 bits, from the lowest on. Carries out of the highest column are whole turns.
    let mut carry = ((lower * digits[4]) >> 32) + ((upper * digits[5]) >> 32);
    let mut column = |k: usize| {
        let sum = lower * digits[k] + carry;
        let total = low(sum) + upper * digits[k + 1];
        carry = (sum >> 32) + (total >> 32);
        low(total)
    };
    let [d, c, b, a] = [column(3), column(2), column(1), column(0)];
    // The nearest multiple of a quarter is subtracted; the rest may be negative.
    let n = (a + Word::of(1 << 29)) >> 30;
    let a = float::<F, -30>(a + Word::of(1 << 31) - (n << 30)) - 2.0;
    let large = ordered_sum(a, float::<F, -62>(b));
    let f = ordered_sum(large.high, large.low + (float::<F, -94>(c) + float::<F, -126>(d)));
    (n, f)
}

/// `x = n π/2 + r` for finite x ≥ 0.
#[inline(always)]
fn reduced<F: Binary64>(x: F) -> (F::Bits, Pair<F>) {
    let (n, f) = quarters(x);
    let high = f.high * FRAC_PI_2;
    let low =
        f.low.mul_add(F::of(FRAC_PI_2), f.high.mul_add(F::of(FRAC_PI_2_REST), f.high.mul_add(F::of(FRAC_PI_2), -high)));
    let small = x.less(F::of(FRAC_PI_4));
    (Word::select(small, Word::of(0), n), pair(F::select(small, x, high), F::select(small, F::of(0.0), low)))
}

/// sin and cos of r, as a large part and a small one.
#[inline(always)]
fn sin_cos<F: Binary64>(r: Pair<F>) -> (Pair<F>, Pair<F>) {
    let square = r.high * r.high;
    let half = square * 0.5;
    let lost = (r.high * 0.5).mul_add(r.high, -half);
    let factor = square.mul_add(fused_polynomial(square, &SIN), F::of(-1.0 / 6.0));
    let rest = (r.high * lost).mul_add(F::of(-1.0 / 3.0), half.mul_add(-r.low, r.low));
    let sin = (r.high * square).mul_add(factor, rest);
    let one = F::of(1.0) - half;
    let cos = (square * square)
        .mul_add(fused_polynomial(square, &COS), r.high.mul_add(-r.low, ((F::of(1.0) - one) - half) - lost));
    (pair(r.high, sin), pair(one, cos))
}

/// `a` if the condition holds, else `b`.
#[inline(always)]
fn select_pair<F: Binary64>(condition: F::Mask, a: Pair<F>, b: Pair<F>) -> Pair<F> {
    pair(F::select(condition, a.high, b.high), F::select(condition, a.low, b.low))
}

/// sin (n π/2 + r)
#[inline(always)]
fn sin_of_quarters<F: Binary64>(n: F::Bits, r: Pair<F>) -> F {
    let (sin, cos) = sin_cos(r);
    flip(select_pair(is_even::<F>(n), sin, cos).value(), n, 1)
}

#[inline(always)]
pub fn sin<F: Binary64>(x: F) -> F {
    let a = x.abs();
    let (n, r) = reduced(a);
    let negative = x.to_bits() >> 63;
    let sin = sin_of_quarters(n + (negative << 1), r);
    F::select(a.less(F::of(f64::INFINITY)), sin, F::of(f64::NAN))
}

#[inline(always)]
pub fn cos<F: Binary64>(x: F) -> F {
    let a = x.abs();
    let (n, r) = reduced(a);
    F::select(a.less(F::of(f64::INFINITY)), sin_of_quarters(n + Word::of(1), r), F::of(f64::NAN))
}

#[inline(always)]
pub fn tan<F: Binary64>(x: F) -> F {
    let a = x.abs();
    let (n, r) = reduced(a);
    let (sin, cos) = sin_cos(r);
    let even = is_even::<F>(n);
    let (above, below) = (select_pair(even, sin, cos), select_pair(even, cos, sin));
    let (above, below) = (ordered_sum(above.high, above.low), ordered_sum(below.high, below.low));
    let inverse = F::of(1.0) / below.high;
    let quotient = above.high * inverse;
    let left = quotient.mul_add(-below.high, above.high) + quotient.mul_add(-below.low, above.low);
    let tan = inverse.mul_add(left, quotient);
    let signed = flip(tan, n + (x.to_bits() >> 63), 0);
    F::select(a.less(F::of(f64::INFINITY)), signed, F::of(f64::NAN))
}
