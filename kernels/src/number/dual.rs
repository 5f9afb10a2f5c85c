//! Dual numbers: a value and its derivative in one direction. A body computes both at once.

use std::f64::consts::{LN_2, LN_10, PI};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign};

use crate::number::BitFunction;
use crate::number::scalar::{Const, Element, Field, Float, Num, Real, lit};

/// `value + tangent · ε` with `ε² = 0`.
///
/// Every primitive has its own derivative, in a form that is accurate in the tails. It applies the derivative with
/// [`Num::chain`], so values that don't depend on the variable contribute nothing, not even NaN. A `Dual<Dual<S>>`
/// carries second derivatives. Comparisons use the values only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dual<S> {
    /// The value.
    pub value: S,
    /// Its derivative.
    pub tangent: S,
}

impl<S: Element> Dual<S> {
    /// The variable of differentiation: tangent 1.
    #[inline(always)]
    pub fn variable(value: S) -> Self {
        Dual { value, tangent: S::one() }
    }

    /// A number that doesn't depend on the variable: tangent 0.
    #[inline(always)]
    pub fn constant_of(value: S) -> Self {
        Dual { value, tangent: S::zero() }
    }
}

impl<S: Element + Num> Element for Dual<S> {
    type Mask = S::Mask;
    #[inline(always)]
    fn constant(value: Const) -> Self {
        Dual::constant_of(S::constant(value))
    }
    #[inline(always)]
    fn equal(self, other: Self) -> S::Mask {
        self.value.equal(other.value)
    }
    #[inline(always)]
    fn truthy(self) -> S::Mask {
        self.value.truthy()
    }
    #[inline(always)]
    fn select(mask: S::Mask, a: Self, b: Self) -> Self {
        Dual { value: S::select(mask, a.value, b.value), tangent: S::select(mask, a.tangent, b.tangent) }
    }
}

impl<S: Num> Add for Dual<S> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Dual { value: self.value + other.value, tangent: self.tangent + other.tangent }
    }
}

impl<S: Num> Sub for Dual<S> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Dual { value: self.value - other.value, tangent: self.tangent - other.tangent }
    }
}

impl<S: Num> Mul for Dual<S> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Dual {
            value: self.value * other.value,
            tangent: other.value.times(self.tangent) + self.value.times(other.tangent),
        }
    }
}

impl<S: Field> Div for Dual<S> {
    type Output = Self;
    #[inline(always)]
    #[allow(clippy::suspicious_arithmetic_impl)]
    fn div(self, other: Self) -> Self {
        let quotient = self.value.divide(other.value);
        let change = self.tangent - quotient.times(other.tangent);
        Dual { value: quotient, tangent: other.value.recip().chain(change) }
    }
}

impl<S: Float> Rem for Dual<S> {
    type Output = Self;
    #[inline(always)]
    fn rem(self, other: Self) -> Self {
        self.fmod(other)
    }
}

impl<S: Field> Neg for Dual<S> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Dual { value: -self.value, tangent: -self.tangent }
    }
}

macro_rules! assign {
    ($($bound:ident: $trait:ident $method:ident $op:tt;)*) => {$(
        impl<S: $bound> $trait for Dual<S> {
            #[inline(always)]
            fn $method(&mut self, other: Self) { *self = *self $op other; }
        }
    )*};
}
assign! {
    Num: AddAssign add_assign +;
    Num: SubAssign sub_assign -;
    Num: MulAssign mul_assign *;
    Field: DivAssign div_assign /;
}

/// Functions of one argument, as `name(x) = y => dy/dx`.
macro_rules! derivatives {
    ($($name:ident($x:ident) = $y:tt => $derivative:expr;)*) => {$(
        #[inline(always)]
        fn $name(self) -> Self {
            let $x = self.value;
            let $y = $x.$name();
            Dual { value: $y, tangent: ($derivative).chain(self.tangent) }
        }
    )*};
}

/// Piecewise constant functions.
macro_rules! steps {
    ($($name:ident($self:ident $(, $other:ident)?);)*) => {$(
        #[inline(always)]
        fn $name($self $(, $other: Self)?) -> Self { Dual::constant_of($self.value.$name($($other.value)?)) }
    )*};
}

/// Predicates that depend on the value only.
macro_rules! tests {
    ($($name:ident($self:ident $(, $other:ident)?);)*) => {$(
        #[inline(always)]
        fn $name($self $(, $other: Self)?) -> S::Mask { $self.value.$name($($other.value)?) }
    )*};
}

/// Returns `a` if `first`, `b` if `second`, and the mean of both tangents if neither holds.
#[inline(always)]
fn extremum<S: Real>(value: S, a: Dual<S>, b: Dual<S>, first: S::Mask, second: S::Mask) -> Dual<S> {
    let half: S = lit(0.5);
    let mean = half.chain(a.tangent) + half.chain(b.tangent);
    Dual { value, tangent: S::select(first, a.tangent, S::select(second, b.tangent, mean)) }
}

impl<S: Num> Num for Dual<S> {
    #[inline(always)]
    fn negative(self) -> Self {
        Dual { value: self.value.negative(), tangent: self.tangent.negative() }
    }
    #[inline(always)]
    fn square(self) -> Self {
        Dual { value: self.value.square(), tangent: (self.value + self.value).times(self.tangent) }
    }
    #[inline(always)]
    fn conj(self) -> Self {
        Dual { value: self.value.conj(), tangent: self.tangent.conj() }
    }
    #[inline(always)]
    fn powi(self, exponent: i64) -> Self {
        let derivative = match exponent {
            0 => S::zero(),
            _ => lit::<S>(exponent) * self.value.powi(exponent.wrapping_sub(1)),
        };
        Dual { value: self.value.powi(exponent), tangent: derivative.chain(self.tangent) }
    }
    #[inline(always)]
    fn pow(self, exponent: Self) -> Self {
        let (x, y) = (self.value, exponent.value);
        let power = x.pow(y);
        // y xʸ⁻¹. It is 0 if y is 0, even if x⁻¹ is infinite.
        let by_base = x.pow(y - S::one()).chain(y);
        // xʸ ln x. Its limit at x = 0 is 0 wherever xʸ is finite.
        let flat = x.equal(S::zero()) & (power * S::zero()).equal(S::zero());
        let by_exponent = S::select(flat, S::zero(), power * x.exponent_slope());
        Dual { value: power, tangent: by_base.chain(self.tangent) + by_exponent.chain(exponent.tangent) }
    }
    #[inline(always)]
    fn detach(self) -> Self {
        Dual::constant_of(self.value.detach())
    }
    #[inline(always)]
    fn exponent_slope(self) -> Self {
        Dual { value: self.value.exponent_slope(), tangent: self.value.powi(-1).chain(self.tangent) }
    }
    /// Component by component: the derivative of a tangent may be nonzero where the tangent is 0.
    #[inline(always)]
    fn chain(self, tangent: Self) -> Self {
        Dual {
            value: self.value.chain(tangent.value),
            tangent: self.tangent.chain(tangent.value) + self.value.chain(tangent.tangent),
        }
    }
}

impl<S: Real> Real for Dual<S> {
    tests! { less(self, other); less_equal(self, other); isnan(self); isinf(self); signbit(self); }
    steps! { sign(self); floor(self); ceil(self); round(self); trunc(self); floor_divide(self, other); }
    derivatives! { abs(x) = _value => x.sign(); }
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        let (a, b) = (self.value, other.value);
        extremum(a.maximum(b), self, other, a.greater(b), b.greater(a))
    }
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        let (a, b) = (self.value, other.value);
        extremum(a.minimum(b), self, other, a.less(b), b.less(a))
    }
    #[inline(always)]
    fn remainder(self, other: Self) -> Self {
        let (a, b) = (self.value, other.value);
        Dual { value: a.remainder(b), tangent: self.tangent - a.floor_divide(b).chain(other.tangent) }
    }
}

/// True if `x²` is infinite; `x` itself may be finite.
#[inline(always)]
fn square_overflows<S: Field>(x: S) -> S::Mask {
    (x * x).recip().equal(S::zero())
}

impl<S: Field> Field for Dual<S> {
    derivatives! {
        recip(_x) = y => -(y * y);
        sqrt(_x) = y => lit::<S>(0.5) / y;
        exp(_x) = y => y;
        expm1(x) = _y => x.exp();
        log(x) = _y => x.recip();
        log1p(x) = _y => (S::one() + x).recip();
        log2(x) = _y => (x * lit(LN_2)).recip();
        log10(x) = _y => (x * lit(LN_10)).recip();
        sin(x) = _y => x.cos();
        cos(x) = _y => -x.sin();
        tan(_x) = y => S::one() + y * y;
        asin(x) = _y => ((S::one() - x).sqrt() * (S::one() + x).sqrt()).recip();
        acos(x) = _y => -((S::one() - x).sqrt() * (S::one() + x).sqrt()).recip();
        atan(x) = _y => S::select(square_overflows(x), x.recip().square(), (S::one() + x * x).recip());
        sinh(x) = _y => x.cosh();
        cosh(x) = _y => x.sinh();
        tanh(x) = _y => lit::<S>(4) * (x + x).sigmoid_and_slope().1;
        asinh(x) = y => S::select(square_overflows(x), y.tanh().divide(x), (S::one() + x * x).sqrt().recip());
        acosh(x) = _y => ((x - S::one()).sqrt() * (x + S::one()).sqrt()).recip();
        atanh(x) = _y => ((S::one() - x) * (S::one() + x)).recip();
    }
    #[inline(always)]
    fn sigmoid(self) -> Self {
        // The value of the function itself, so that a gradient decides conditions as the function does.
        let (_, slope) = self.value.sigmoid_and_slope();
        Dual { value: self.value.sigmoid(), tangent: slope.chain(self.tangent) }
    }
    #[inline(always)]
    fn sigmoid_and_slope(self) -> (Self, Self) {
        let (value, slope) = self.value.sigmoid_and_slope();
        let curvature = slope * (S::one() - value - value);
        let dual = |value, derivative: S| Dual { value, tangent: derivative.chain(self.tangent) };
        (dual(value, slope), dual(slope, curvature))
    }
}

/// The cosine of the angle of (`x`, `y`), which is the derivative of `hypot` by `x`. 0 at the origin.
#[inline(always)]
fn cosine<S: Float>(x: S, y: S) -> S {
    // Infinite coordinates dominate finite ones and count as equally long.
    let infinite = x.isinf() | y.isinf();
    let clip = |v: S| {
        let unit = S::select(v.isinf(), S::one(), S::zero()).copysign(v);
        S::select(infinite, unit, v)
    };
    let (x, y) = (clip(x), clip(y));
    let length = x.hypot(y);
    S::select(length.equal(S::zero()), S::zero(), x / length)
}

/// σ(`x` − `y`), which is the derivative of `logaddexp` by `x`. Two equal infinities get half each.
#[inline(always)]
fn share<S: Float>(x: S, y: S) -> S {
    S::select(x.equal(y) & x.isinf(), S::zero(), x - y).sigmoid()
}

impl<S: Float> Float for Dual<S> {
    tests! { isfinite(self); }
    derivatives! {
        rsqrt(_x) = y => lit::<S>(-0.5) * y * y * y;
        cbrt(_x) = y => (lit::<S>(3) * y * y).recip();
        exp2(_x) = y => y * lit(LN_2);
        silu(x) = y => {
            let s = x.sigmoid();
            s + y * (S::one() - s)
        };
        softplus(x) = _y => x.sigmoid();
        log_sigmoid(x) = _y => (-x).sigmoid();
        erf(x) = _y => (-(x * x)).exp() * lit(2.0 / PI.sqrt());
        erfc(x) = _y => (-(x * x)).exp() * lit(-2.0 / PI.sqrt());
        normal_cdf(x) = _y => x.normal_pdf();
        normal_pdf(x) = y => -(x * y);
        lgamma(x) = _y => x.digamma();
        digamma(x) = _y => x.polygamma(1);
        as_float16(_x) = _y => S::one();
        as_bfloat16(_x) = _y => S::one();
    }
    #[inline(always)]
    fn nan() -> Self {
        Dual::constant_of(S::nan())
    }
    #[inline(always)]
    fn infinity() -> Self {
        Dual::constant_of(S::infinity())
    }
    #[inline(always)]
    fn epsilon() -> Self {
        Dual::constant_of(S::epsilon())
    }
    #[inline(always)]
    fn polygamma(self, order: u32) -> Self {
        let x = self.value;
        Dual { value: x.polygamma(order), tangent: x.polygamma(order.saturating_add(1)).chain(self.tangent) }
    }
    #[inline(always)]
    fn atan2(self, other: Self) -> Self {
        let (y, x) = (self.value, other.value);
        // (x dy − y dx) / r², without squaring r.
        let length = x.hypot(y);
        let length = S::select(length.equal(S::zero()), S::one(), length);
        let (by_y, by_x) = (cosine(x, y) / length, -cosine(y, x) / length);
        Dual { value: y.atan2(x), tangent: by_y.chain(self.tangent) + by_x.chain(other.tangent) }
    }
    #[inline(always)]
    fn hypot(self, other: Self) -> Self {
        let (x, y) = (self.value, other.value);
        Dual { value: x.hypot(y), tangent: cosine(x, y).chain(self.tangent) + cosine(y, x).chain(other.tangent) }
    }
    #[inline(always)]
    fn logaddexp(self, other: Self) -> Self {
        let (x, y) = (self.value, other.value);
        Dual { value: x.logaddexp(y), tangent: share(x, y).chain(self.tangent) + share(y, x).chain(other.tangent) }
    }
    #[inline(always)]
    fn of_bits(bits: u64) -> Self {
        Dual::constant_of(S::of_bits(bits))
    }
    #[inline(always)]
    fn bits(function: BitFunction, a: Self, b: Self) -> Self {
        Dual::constant_of(S::bits(function, a.value, b.value))
    }
    #[inline(always)]
    fn bits_equal(self, other: Self) -> S::Mask {
        self.value.bits_equal(other.value)
    }
    #[inline(always)]
    fn bits_less(self, other: Self) -> S::Mask {
        self.value.bits_less(other.value)
    }
    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        let derivative = self.value.sign() * S::one().copysign(sign.value);
        Dual { value: self.value.copysign(sign.value), tangent: derivative.chain(self.tangent) }
    }
    #[inline(always)]
    fn fmod(self, other: Self) -> Self {
        let (a, b) = (self.value, other.value);
        let rest = a.fmod(b);
        // Rounded, because a / b itself may be rounded up to an integer.
        Dual { value: rest, tangent: self.tangent - ((a - rest) / b).round().chain(other.tangent) }
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        let tangent = b.value.times(self.tangent) + self.value.times(b.tangent) + c.tangent;
        Dual { value: self.value.mul_add(b.value, c.value), tangent }
    }
}
