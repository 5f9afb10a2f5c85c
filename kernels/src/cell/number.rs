//! [`Traced`]: a number that records how it is computed.

use std::cmp::Ordering;
use std::iter::{Product, Sum};
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign};

use super::function::{self as f, Function};
use super::rule::{Of, value};
use super::tape::{Differentiable, NOWHERE, branch, push};
use crate::number::scalar::{Const, Element, Field, Float, Machine, Num, Real, lit};
use crate::number::{BitFunction, Dual, FieldReference, NumReference};

/// A number of a cell body whose steps are recorded on the [`Tape`](super::Tape) of the thread.
///
/// A comparison compares the values, and the tape notes that the body may have branched. A number that depends on no variable is a
/// constant, and its steps are not recorded.
#[derive(Clone, Copy, Debug)]
pub struct Traced<S> {
    pub(super) value: S,
    /// The place of its step on the tape.
    pub(super) node: u32,
}

impl<S> Traced<S> {
    /// A number that does not depend on a variable.
    #[inline]
    pub fn constant_of(value: S) -> Self {
        Traced { value, node: NOWHERE }
    }

    /// The value.
    #[inline]
    pub fn value(self) -> S
    where
        S: Copy,
    {
        self.value
    }

    /// The place of its step among all steps. `None` for a constant.
    pub fn place(self) -> Option<usize> {
        (self.node != NOWHERE).then_some(self.node as usize)
    }
}

/// The result of a function.
#[inline]
fn apply<F, S, const N: usize>(x: [Traced<S>; N], parameter: i64) -> Traced<S>
where
    F: Function<S, N> + Function<Dual<S>, N>,
    S: Differentiable,
{
    let value = value(PhantomData::<F>, x.map(|x| x.value), parameter);
    match x.iter().all(|x| x.node == NOWHERE) {
        true => Traced::constant_of(value),
        false => push(Of::<F, S, N>::RULE, x, parameter, value),
    }
}

/// The result of a comparison or a test.
#[inline]
fn test<S: Differentiable, const N: usize, R>(x: [Traced<S>; N], test: impl FnOnce([S; N]) -> R) -> R {
    if x.iter().any(|x| x.node != NOWHERE) {
        branch::<S>();
    }
    test(x.map(|x| x.value))
}

impl<S: Differentiable> Default for Traced<S> {
    fn default() -> Self {
        Traced::constant_of(S::default())
    }
}

impl<S: Differentiable> PartialEq for Traced<S> {
    fn eq(&self, other: &Self) -> bool {
        test([*self, *other], |[x, y]| x.equal(y))
    }
}

impl<S: Differentiable> PartialOrd for Traced<S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        test([*self, *other], |[x, y]| x.compare(y))
    }
}

impl<S: Differentiable> Element for Traced<S> {
    type Mask = bool;
    fn constant(value: Const) -> Self {
        Traced::constant_of(S::constant(value))
    }
    fn equal(self, other: Self) -> bool {
        test([self, other], |[x, y]| x.equal(y))
    }
    fn truthy(self) -> bool {
        test([self], |[x]| x.truthy())
    }
    fn select(mask: bool, a: Self, b: Self) -> Self {
        if mask { a } else { b }
    }
}

impl<S: Differentiable> Machine for Traced<S> {
    type Stored = Self;
    fn load(stored: Self) -> Self {
        stored
    }
    fn store(self) -> Self {
        self
    }
    const RANK_BITS: u32 = S::RANK_BITS;
    fn rank(self) -> u64 {
        test([self], |[x]| x.rank())
    }
    fn truncated(self) -> i128 {
        test([self], |[x]| x.truncated())
    }
}

macro_rules! operators {
    ($($bound:ident: $trait:ident $method:ident $assign:ident $assign_method:ident = $function:ident;)*) => {$(
        impl<S: $bound + Differentiable> $trait for Traced<S> {
            type Output = Self;
            #[inline]
            fn $method(self, other: Self) -> Self { apply::<f::$function, S, 2>([self, other], 0) }
        }
        impl<S: $bound + Differentiable> $assign for Traced<S> {
            #[inline]
            fn $assign_method(&mut self, other: Self) { *self = $trait::$method(*self, other); }
        }
        impl<S: $bound + Differentiable> $trait<&Self> for Traced<S> {
            type Output = Self;
            #[inline]
            fn $method(self, other: &Self) -> Self { $trait::$method(self, *other) }
        }
        impl<S: $bound + Differentiable> $assign<&Self> for Traced<S> {
            #[inline]
            fn $assign_method(&mut self, other: &Self) { *self = $trait::$method(*self, *other); }
        }
        impl<S: $bound + Differentiable> $trait<Traced<S>> for &Traced<S> {
            type Output = Traced<S>;
            #[inline]
            fn $method(self, other: Traced<S>) -> Traced<S> { $trait::$method(*self, other) }
        }
        impl<S: $bound + Differentiable> $trait<&Traced<S>> for &Traced<S> {
            type Output = Traced<S>;
            #[inline]
            fn $method(self, other: &Traced<S>) -> Traced<S> { $trait::$method(*self, *other) }
        }
    )*};
}
operators! {
    Num: Add add AddAssign add_assign = Add;
    Num: Sub sub SubAssign sub_assign = Subtract;
    Num: Mul mul MulAssign mul_assign = Multiply;
    Field: Div div DivAssign div_assign = Quotient;
}

impl<S: Float + Differentiable> Rem for Traced<S> {
    type Output = Self;
    fn rem(self, other: Self) -> Self {
        self.fmod(other)
    }
}

impl<S: Field + Differentiable> Neg for Traced<S> {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        self.negative()
    }
}

impl<S: Field + Differentiable> Neg for &Traced<S> {
    type Output = Traced<S>;
    #[inline]
    fn neg(self) -> Traced<S> {
        self.negative()
    }
}

impl<S: Num + Differentiable> NumReference<Traced<S>> for &Traced<S> {}
impl<S: Field + Differentiable> FieldReference<Traced<S>> for &Traced<S> {}

/// Rust's own sums begin with −0, which changes no bit of the first number.
impl<S: Num + Differentiable> Sum for Traced<S> {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(lit(-0.0), |total, x| total + x)
    }
}
impl<'a, S: Num + Differentiable> Sum<&'a Self> for Traced<S> {
    fn sum<I: Iterator<Item = &'a Self>>(items: I) -> Self {
        items.copied().sum()
    }
}
impl<S: Num + Differentiable> Product for Traced<S> {
    fn product<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(lit(1.0), |total, x| total * x)
    }
}
impl<'a, S: Num + Differentiable> Product<&'a Self> for Traced<S> {
    fn product<I: Iterator<Item = &'a Self>>(items: I) -> Self {
        items.copied().product()
    }
}

macro_rules! methods {
    ($($method:ident($self:ident $(, $x:ident)*) = $function:ident;)*) => {$(
        #[inline]
        fn $method($self $(, $x: Self)*) -> Self { apply::<f::$function, S, _>([$self $(, $x)*], 0) }
    )*};
}
macro_rules! tests {
    ($($method:ident($self:ident $(, $other:ident)?);)*) => {$(
        #[inline]
        fn $method($self $(, $other: Self)?) -> bool { test([$self $(, $other)?], |[x $(, $other)?]| x.$method($($other)?)) }
    )*};
}

impl<S: Differentiable> Num for Traced<S> {
    methods! {
        negative(self) = Negative; square(self) = Square; conj(self) = Conj; detach(self) = Detach; chain(self, tangent) = Chain;
        pow(self, y) = Pow; exponent_slope(self) = ExponentSlope;
    }
    fn powi(self, exponent: i64) -> Self {
        apply::<f::Powi, S, 1>([self], exponent)
    }
}

impl<S: Real + Differentiable> Real for Traced<S> {
    tests! { less(self, other); less_equal(self, other); isnan(self); isinf(self); signbit(self); }
    methods! {
        maximum(self, y) = Maximum; minimum(self, y) = Minimum; abs(self) = Abs; sign(self) = Sign;
        floor(self) = Floor; ceil(self) = Ceil; round(self) = Round; trunc(self) = Trunc;
        floor_divide(self, y) = FloorDivide; remainder(self, y) = Remainder;
    }
}

impl<S: Field + Differentiable> Field for Traced<S> {
    methods! {
        divide(self, y) = Divide; recip(self) = Recip; sqrt(self) = Sqrt; exp(self) = Exp; expm1(self) = Expm1;
        log(self) = Log; log1p(self) = Log1p; log2(self) = Log2; log10(self) = Log10; sin(self) = Sin; cos(self) = Cos;
        tan(self) = Tan; asin(self) = Asin; acos(self) = Acos; atan(self) = Atan; sinh(self) = Sinh;
        cosh(self) = Cosh; tanh(self) = Tanh; asinh(self) = Asinh; acosh(self) = Acosh; atanh(self) = Atanh;
        sigmoid(self) = Sigmoid;
    }
}

impl<S: Float + Differentiable> Float for Traced<S> {
    tests! { isfinite(self); }
    methods! {
        rsqrt(self) = Rsqrt; cbrt(self) = Cbrt; exp2(self) = Exp2; silu(self) = Silu; softplus(self) = Softplus;
        log_sigmoid(self) = LogSigmoid; erf(self) = Erf; erfc(self) = Erfc; normal_cdf(self) = NormalCdf;
        normal_pdf(self) = NormalPdf; lgamma(self) = Lgamma; digamma(self) = Digamma; atan2(self, y) = Atan2;
        hypot(self, y) = Hypot; logaddexp(self, y) = Logaddexp; copysign(self, y) = Copysign; fmod(self, y) = Fmod;
        mul_add(self, y, z) = MulAdd; as_float16(self) = Float16; as_bfloat16(self) = Bfloat16;
    }
    fn of_bits(bits: u64) -> Self {
        Traced::constant_of(S::of_bits(bits))
    }
    // The bits are not steps, so other cells may have other ones.
    fn bits(function: BitFunction, a: Self, b: Self) -> Self {
        Traced::constant_of(test([a, b], |[a, b]| S::bits(function, a, b)))
    }
    fn bits_equal(self, other: Self) -> bool {
        test([self, other], |[x, y]| x.bits_equal(y))
    }
    fn bits_less(self, other: Self) -> bool {
        test([self, other], |[x, y]| x.bits_less(y))
    }
    fn nan() -> Self {
        Traced::constant_of(S::nan())
    }
    fn infinity() -> Self {
        Traced::constant_of(S::infinity())
    }
    fn epsilon() -> Self {
        Traced::constant_of(S::epsilon())
    }
    fn polygamma(self, order: u32) -> Self {
        apply::<f::Polygamma, S, 1>([self], order.into())
    }
}
