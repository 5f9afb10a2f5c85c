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
    /// `true` or `false`.
    Bool(bool),
    /// Wide enough for every integer dtype, so that none loses digits on its way through a float.
    Int(i128),
    /// Anything with a point or an exponent.
    Float(f64),
}

impl Const {
    /// A whole number of at most 256 in size, which every float format holds exactly.
    pub fn small_integer(self) -> Option<i128> {
        match self {
            Const::Int(i) if i.unsigned_abs() <= 256 => Some(i),
            Const::Float(v) if v.fract() == 0.0 && v.abs() <= 256.0 => Some(v as i128),
            _ => None,
        }
    }
}

/// The truth value of a comparison: `bool` for machine numbers.
pub trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// The same truth everywhere.
    fn constant(value: bool) -> Self;
}

/// Any element: it can be compared for equality, tested for truth, and chosen by a mask.
pub trait Element: Copy {
    /// What comparing two of these yields.
    type Mask: Mask;
    /// The nearest value of this type; out-of-range integers saturate, `Bool` is 0 or 1.
    fn constant(value: Const) -> Self;
    /// `self == other`; NaN equals nothing.
    fn equal(self, other: Self) -> Self::Mask;
    /// `self != 0`; NaN is true.
    fn truthy(self) -> Self::Mask;
    /// `a` where the mask is true, `b` elsewhere; the other one is ignored, NaN and gradient included.
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;
    /// 0.
    #[inline(always)]
    fn zero() -> Self {
        Self::constant(Const::Int(0))
    }
    /// 1.
    #[inline(always)]
    fn one() -> Self {
        Self::constant(Const::Int(1))
    }
    /// `self != other`.
    #[inline(always)]
    fn not_equal(self, other: Self) -> Self::Mask {
        !self.equal(other)
    }
}

/// Numbers. Integer arithmetic wraps. `-x` in a body is [`Num::negative`], which unsigned integers have too.
pub trait Num:
    Element + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + AddAssign + SubAssign + MulAssign
{
    /// `-self`; wraps for integers.
    fn negative(self) -> Self;
    /// `self · self`.
    #[inline(always)]
    fn square(self) -> Self {
        self * self
    }
    /// Complex conjugate; the number itself where it is real.
    fn conj(self) -> Self;
    /// `self` to a whole power by repeated squaring. Integers: a negative power is `1 / self^n`, rounded towards 0.
    fn powi(self, exponent: i64) -> Self;
    /// `self` raised to any power; `0⁰ = 1`. Integers: as [`powi`](Num::powi).
    fn pow(self, exponent: Self) -> Self;
    /// What a power changes by with its exponent, divided by the power: the natural logarithm. Integers, which have no
    /// derivatives, have 0.
    fn exponent_slope(self) -> Self;
    /// `self · tangent`, the step of the chain rule from a derivative to a tangent: a tangent of exactly 0
    /// contributes 0, even where the derivative is infinite or NaN.
    #[inline(always)]
    fn chain(self, tangent: Self) -> Self {
        Self::select(tangent.equal(Self::zero()), Self::zero(), self * tangent)
    }
    /// The same in the rule of products, where `self` is a factor: what is infinite there is so in the product too, and a
    /// type may do with a plain product unless the tangent is known to be 0.
    #[inline(always)]
    fn times(self, tangent: Self) -> Self {
        self.chain(tangent)
    }
}

/// Ordered numbers. NaN wins in [`maximum`](Real::maximum) and [`minimum`](Real::minimum), as in the Array API.
pub trait Real: Num {
    /// `self < other`.
    fn less(self, other: Self) -> Self::Mask;
    /// `self <= other`.
    fn less_equal(self, other: Self) -> Self::Mask;
    /// `self > other`.
    #[inline(always)]
    fn greater(self, other: Self) -> Self::Mask {
        other.less(self)
    }
    /// `self >= other`.
    #[inline(always)]
    fn greater_equal(self, other: Self) -> Self::Mask {
        other.less_equal(self)
    }
    /// The larger one; NaN if either is. Ties share the gradient evenly.
    fn maximum(self, other: Self) -> Self;
    /// The smaller one; NaN if either is. Ties share the gradient evenly.
    fn minimum(self, other: Self) -> Self;
    /// `|self|`; the least integer stays what it is.
    fn abs(self) -> Self;
    /// −1, 0 or 1; NaN stays NaN, and so does a signed zero.
    fn sign(self) -> Self;
    /// To the integer below.
    fn floor(self) -> Self;
    /// To the integer above.
    fn ceil(self) -> Self;
    /// To the nearest, halves to even.
    fn round(self) -> Self;
    /// To the integer nearer 0.
    fn trunc(self) -> Self;
    /// Python's `//`: rounds towards −∞. Integers: 0 where the divisor is 0, as in NumPy.
    fn floor_divide(self, other: Self) -> Self;
    /// Python's `%`: has the divisor's sign. Integers: 0 where the divisor is 0, as in NumPy.
    fn remainder(self, other: Self) -> Self;
    /// Whether it is NaN.
    fn isnan(self) -> Self::Mask;
    /// Whether it is +∞ or −∞.
    fn isinf(self) -> Self::Mask;
    /// Whether its sign is negative, which −0 and some NaN have too.
    fn signbit(self) -> Self::Mask;
}

/// Integers. A shift by the width or more gives 0 (−1 for a negative number shifted right).
pub trait Int: Real + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// `self ^ other`.
    fn bitwise_xor(self, other: Self) -> Self;
    /// `self << other`.
    fn left_shift(self, other: Self) -> Self;
    /// `self >> other`, with the sign.
    fn right_shift(self, other: Self) -> Self;
}

/// Floats and complex numbers: division and the analytic functions.
pub trait Field: Num + Div<Output = Self> + DivAssign + Neg<Output = Self> {
    /// `self / other`, which no part on the way overflows: what `/` becomes in an element body. Of complex numbers the operator
    /// itself squares the divisor.
    #[inline(always)]
    fn divide(self, other: Self) -> Self {
        self / other
    }
    /// `1 / self`.
    #[inline(always)]
    fn recip(self) -> Self {
        Self::one() / self
    }
    /// Square root.
    fn sqrt(self) -> Self;
    /// `eˣ`.
    fn exp(self) -> Self;
    /// `eˣ − 1`, exact near 0.
    fn expm1(self) -> Self;
    /// Natural logarithm.
    fn log(self) -> Self;
    /// `ln(1 + x)`, exact near 0.
    fn log1p(self) -> Self;
    /// Logarithm to base 2.
    fn log2(self) -> Self;
    /// Logarithm to base 10.
    fn log10(self) -> Self;
    /// Sine of radians.
    fn sin(self) -> Self;
    /// Cosine of radians.
    fn cos(self) -> Self;
    /// Tangent of radians.
    fn tan(self) -> Self;
    /// Inverse sine.
    fn asin(self) -> Self;
    /// Inverse cosine.
    fn acos(self) -> Self;
    /// Inverse tangent.
    fn atan(self) -> Self;
    /// Hyperbolic sine.
    fn sinh(self) -> Self;
    /// Hyperbolic cosine.
    fn cosh(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Inverse hyperbolic sine.
    fn asinh(self) -> Self;
    /// Inverse hyperbolic cosine.
    fn acosh(self) -> Self;
    /// Inverse hyperbolic tangent.
    fn atanh(self) -> Self;
    /// `1 / (1 + e⁻ˣ)`, exact in both tails.
    fn sigmoid(self) -> Self;
    /// [`sigmoid`](Field::sigmoid) and its derivative `σ(x) σ(−x)`.
    #[inline(always)]
    fn sigmoid_and_slope(self) -> (Self, Self) {
        let y = self.sigmoid();
        (y, y * (-self).sigmoid())
    }
}

/// [`Field::sigmoid_and_slope`] where numbers are ordered: by the smaller of σ(x) and σ(−x) alone, from which the other
/// follows exactly.
#[inline(always)]
pub(crate) fn sigmoid_and_slope<S: Float>(x: S) -> (S, S) {
    let is_right = x.greater(S::zero());
    let small = S::select(is_right, -x, x).sigmoid();
    let large = S::one() - small;
    (S::select(is_right, large, small), small * large)
}

/// Real floating-point numbers.
pub trait Float: Real + Field + Rem<Output = Self> {
    /// Not a number.
    fn nan() -> Self;
    /// +∞.
    fn infinity() -> Self;
    /// The distance from 1 to the next larger number.
    fn epsilon() -> Self;
    /// Whether it is neither NaN nor infinite.
    fn isfinite(self) -> Self::Mask;
    /// `1 / √x`.
    fn rsqrt(self) -> Self;
    /// Cube root.
    fn cbrt(self) -> Self;
    /// `2ˣ`.
    fn exp2(self) -> Self;
    /// `x / (1 + e⁻ˣ)`: `x σ(x)`, exact in both tails.
    fn silu(self) -> Self;
    /// `ln(1 + eˣ)`, without overflow.
    fn softplus(self) -> Self;
    /// `ln σ(x)`, without overflow.
    fn log_sigmoid(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    /// `1 − erf(x)`, exact in the right tail.
    fn erfc(self) -> Self;
    /// `Φ(x)`, the distribution function of the standard normal distribution, exact in the left tail.
    fn normal_cdf(self) -> Self;
    /// `ln |Γ(x)|`.
    fn lgamma(self) -> Self;
    /// `d/dx ln Γ(x)`.
    fn digamma(self) -> Self;
    /// The `order`-th derivative of [`digamma`](Float::digamma), which is order 0; this is what makes `lgamma`
    /// differentiable any number of times. Machine numbers know the orders up to 12, beyond that it is NaN, as it is
    /// for a type that doesn't override this method.
    #[inline(always)]
    fn polygamma(self, order: u32) -> Self {
        if order == 0 { self.digamma() } else { Self::nan() }
    }
    /// The angle of the point (`other`, `self`), in radians.
    fn atan2(self, other: Self) -> Self;
    /// `√(x² + y²)` without overflow.
    fn hypot(self, other: Self) -> Self;
    /// `ln(eˣ + eʸ)` without overflow.
    fn logaddexp(self, other: Self) -> Self;
    /// The magnitude of `self` with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// C's `fmod`: has the dividend's sign.
    fn fmod(self, other: Self) -> Self;
    /// `self * b + c`, rounded once where the machine can.
    fn mul_add(self, b: Self, c: Self) -> Self;
}

/// A type that memory holds and a loop can run over: what cell bodies get.
pub trait Machine: Element<Mask = bool> + Default + PartialEq + Send + Sync + std::fmt::Debug + 'static {
    /// What memory holds for it: the type itself, except that it is [`Truth`](crate::Truth) for `bool`.
    type Stored: Copy + Send + Sync + 'static;
    /// The value that was read from memory.
    fn load(stored: Self::Stored) -> Self;
    /// What is written to memory.
    fn store(self) -> Self::Stored;
    /// Whether loops over it are compiled for every SIMD level. Only floats are: the loops of the others are bound by
    /// memory at the baseline already, and every clone costs compile time and size.
    const VECTORIZE: bool = false;
    /// Bits of a [rank](Machine::rank); 0 for what has no order.
    const RANK_BITS: u32 = 0;
    /// An unsigned number whose order is that of these numbers: −0 ranks as 0, and every NaN above all others.
    #[inline(always)]
    fn rank(self) -> u64 {
        0
    }
    /// The number that alone has this rank; none for a rank that several share, as zeros and NaN do.
    #[inline(always)]
    fn of_rank(_rank: u64) -> Option<Self> {
        None
    }
}

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
