//! The algebra that op bodies are written in.
//!
//! A body is generic over one of these traits and is instantiated with machine numbers, with dual numbers
//! ([`Dual`](crate::Dual)), and with whatever else implements them. A comparison therefore yields
//! [`Element::Mask`], which is `bool` for machine numbers but need not be.
//!
//! | trait | dtypes |
//! |---|---|
//! | [`Element`] | all |
//! | [`Num`] | integers, floats, complex |
//! | [`Real`] | integers, floats |
//! | [`Int`] | integers |
//! | [`Field`] | floats, complex |
//! | [`Float`] | floats |
//!
//! `f16` and `bf16` are storage formats: they are computed in `f32` and are never a `T` here.

use std::ops::{Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, Sub, SubAssign};

/// A number as it is written in a body or given as an attribute, before it is known which type it will be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Const {
    Bool(bool),
    /// Wide enough for every integer dtype, so that none loses digits on its way through a float.
    Int(i128),
    Float(f64),
}

/// The truth value of a comparison: `bool` for machine numbers.
pub trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    fn constant(value: bool) -> Self;
}

/// Any element: it can be compared for equality, tested for truth, and chosen by a mask.
pub trait Element: Copy {
    type Mask: Mask;
    /// The nearest value of this type; out-of-range integers saturate, `Bool` is 0 or 1.
    fn constant(value: Const) -> Self;
    fn equal(self, other: Self) -> Self::Mask;
    /// `self != 0`; NaN is true.
    fn truthy(self) -> Self::Mask;
    /// `a` where the mask is true, `b` elsewhere; the other one is ignored, NaN and gradient included.
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;
    fn zero() -> Self {
        Self::constant(Const::Int(0))
    }
    fn one() -> Self {
        Self::constant(Const::Int(1))
    }
    fn not_equal(self, other: Self) -> Self::Mask {
        !self.equal(other)
    }
}

/// Numbers. Integer arithmetic wraps. `-x` in a body is [`Num::negative`], which unsigned integers have too.
pub trait Num:
    Element
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    fn negative(self) -> Self;
    fn square(self) -> Self {
        self * self
    }
    /// Complex conjugate; the number itself where it is real.
    fn conj(self) -> Self;
    /// `self` to a whole power by repeated squaring.
    fn powi(self, exponent: i64) -> Self;
}

/// Ordered numbers. NaN wins in [`maximum`](Real::maximum) and [`minimum`](Real::minimum), as in the Array API.
pub trait Real: Num {
    fn less(self, other: Self) -> Self::Mask;
    fn less_equal(self, other: Self) -> Self::Mask;
    fn greater(self, other: Self) -> Self::Mask {
        other.less(self)
    }
    fn greater_equal(self, other: Self) -> Self::Mask {
        other.less_equal(self)
    }
    /// The larger one; NaN if either is. Ties share the gradient evenly.
    fn maximum(self, other: Self) -> Self;
    /// The smaller one; NaN if either is. Ties share the gradient evenly.
    fn minimum(self, other: Self) -> Self;
    fn abs(self) -> Self;
    /// −1, 0 or 1; NaN stays NaN, and so does a signed zero.
    fn sign(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    /// To the nearest, halves to even.
    fn round(self) -> Self;
    fn trunc(self) -> Self;
    /// Python's `//`: rounds towards −∞. Integers: 0 where the divisor is 0, as in NumPy.
    fn floor_divide(self, other: Self) -> Self;
    /// Python's `%`: has the divisor's sign. Integers: 0 where the divisor is 0, as in NumPy.
    fn remainder(self, other: Self) -> Self;
    fn isnan(self) -> Self::Mask;
    fn isinf(self) -> Self::Mask;
    fn signbit(self) -> Self::Mask;
}

/// Integers. A shift by the width or more gives 0 (−1 for a negative number shifted right).
pub trait Int: Real + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    fn bitwise_xor(self, other: Self) -> Self;
    fn left_shift(self, other: Self) -> Self;
    fn right_shift(self, other: Self) -> Self;
}

/// Floats and complex numbers: division and the analytic functions.
pub trait Field: Num + Div<Output = Self> + DivAssign + Neg<Output = Self> {
    fn recip(self) -> Self {
        Self::one() / self
    }
    fn sqrt(self) -> Self;
    fn exp(self) -> Self;
    fn expm1(self) -> Self;
    fn log(self) -> Self;
    fn log1p(self) -> Self;
    fn log2(self) -> Self;
    fn log10(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    fn asin(self) -> Self;
    fn acos(self) -> Self;
    fn atan(self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn tanh(self) -> Self;
    fn asinh(self) -> Self;
    fn acosh(self) -> Self;
    fn atanh(self) -> Self;
    /// `self` raised to any power; `0⁰ = 1`.
    fn pow(self, exponent: Self) -> Self;
    /// `1 / (1 + e⁻ˣ)`, exact in both tails.
    fn sigmoid(self) -> Self;
}

/// Real floating-point numbers.
pub trait Float: Real + Field + Rem<Output = Self> {
    fn nan() -> Self;
    fn infinity() -> Self;
    /// The distance from 1 to the next larger number.
    fn epsilon() -> Self;
    fn isfinite(self) -> Self::Mask;
    /// `1 / √x`.
    fn rsqrt(self) -> Self;
    fn cbrt(self) -> Self;
    fn exp2(self) -> Self;
    /// `ln(1 + eˣ)`, without overflow.
    fn softplus(self) -> Self;
    /// `ln σ(x)`, without overflow.
    fn log_sigmoid(self) -> Self;
    fn erf(self) -> Self;
    fn erfc(self) -> Self;
    /// `ln |Γ(x)|`.
    fn lgamma(self) -> Self;
    /// `d/dx ln Γ(x)`.
    fn digamma(self) -> Self;
    /// The angle of the point (`other`, `self`), in radians.
    fn atan2(self, other: Self) -> Self;
    /// `√(x² + y²)` without overflow.
    fn hypot(self, other: Self) -> Self;
    /// `ln(eˣ + eʸ)` without overflow.
    fn logaddexp(self, other: Self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    /// C's `fmod`: has the dividend's sign.
    fn fmod(self, other: Self) -> Self;
    /// `self * b + c`, rounded once where the machine can.
    fn mul_add(self, b: Self, c: Self) -> Self;
}

/// A type that memory holds and a loop can run over: what cell bodies get.
pub trait Machine: Element<Mask = bool> + Default + PartialEq + Send + Sync + std::fmt::Debug + 'static {}

/// The constant as a `T`: what a literal in a body becomes.
#[inline(always)]
pub fn lit<T: Element>(value: impl Into<Const>) -> T {
    T::constant(value.into())
}

macro_rules! const_from {
    ($($t:ty => $v:ident),*) => {$(
        impl From<$t> for Const {
            #[inline(always)]
            fn from(value: $t) -> Self { Const::$v(value.into()) }
        }
    )*};
}
const_from!(bool => Bool, i8 => Int, i16 => Int, i32 => Int, i64 => Int, u8 => Int, u16 => Int, u32 => Int, u64 => Int, f32 => Float, f64 => Float);

impl From<usize> for Const {
    #[inline(always)]
    fn from(value: usize) -> Self {
        Const::Int(value as i128)
    }
}
