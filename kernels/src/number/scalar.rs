//! The algebra that op bodies are written in.
//!
//! A body is generic over one of these traits. It is instantiated with machine numbers, with dual numbers
//! ([`Dual`](crate::Dual)), and with every other type that implements the trait. A comparison therefore returns
//! [`Element::Mask`], which is `bool` for machine numbers but not for every type.
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
//! `f16` and `bf16` are storage formats. Their values are computed in `f32`, so they never implement these traits.

use std::ops::{Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, Sub, SubAssign};

use super::bits::{BitFunction, Bits};

/// A number from a body's literal or from an attribute, before its dtype is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Const {
    /// `true` or `false`.
    Bool(bool),
    /// Wide enough for every integer dtype, so that no integer is rounded to a float.
    Int(i128),
    /// A number with a decimal point or an exponent.
    Float(f64),
}

impl Const {
    /// The number as an integer, if it is one and its magnitude is at most 256. Every float format represents these
    /// exactly.
    pub fn small_integer(self) -> Option<i128> {
        match self {
            Const::Int(i) if i.unsigned_abs() <= 256 => Some(i),
            Const::Float(v) if v.fract() == 0.0 && v.abs() <= 256.0 => Some(v as i128),
            _ => None,
        }
    }
}

/// The result of a comparison: `bool` for machine numbers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition on elements",
    label = "expected the result of a comparison",
    note = "compare elements, such as `x > 0`, and combine conditions by `&&`, `||` and `!`"
)]
pub trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// The mask that has this value for every element.
    fn constant(value: bool) -> Self;
    /// Whether it is known to be false for every element.
    #[inline(always)]
    fn is_known_false(self) -> bool {
        false
    }
}

/// Any element. It supports equality, a test for truth, and selection by a mask.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element",
    label = "not an element",
    note = "an op for one element takes `T` with `T: Float`, one for a row takes `R` with `R: Row`, one for a cell takes `&[T]`",
    note = "on tensors, call the op: `op::call(x)?`"
)]
pub trait Element: Copy {
    /// The result of a comparison.
    type Mask: Mask;
    /// The nearest value of this type. Out-of-range integers saturate; `Bool` becomes 0 or 1.
    fn constant(value: Const) -> Self;
    /// `self == other`; NaN equals nothing.
    fn equal(self, other: Self) -> Self::Mask;
    /// `self != 0`; NaN is true.
    fn truthy(self) -> Self::Mask;
    /// `a` where the mask is true, `b` elsewhere. The value that is not selected is ignored, even if it or its gradient
    /// is NaN.
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

/// Numbers. Integer arithmetic wraps. `-x` in a body becomes [`Num::negative`], which unsigned integers also have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known to be a number",
    label = "not known to be a number",
    note = "bound the dtype variable by `Num`, `Real`, `Int`, `Field` or `Float`",
    note = "on tensors, call the op: `op::call(x)?`"
)]
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
    /// Complex conjugate. Real numbers return themselves.
    fn conj(self) -> Self;
    /// `self` to an integer power, by repeated squaring. For integers, a negative power is `1 / self^n`, rounded
    /// towards 0.
    fn powi(self, exponent: i64) -> Self;
    /// `self` to any power; `0⁰ = 1`. Integers behave as in [`powi`](Num::powi).
    fn pow(self, exponent: Self) -> Self;
    /// The derivative of a power by its exponent, divided by the power: the natural logarithm of `self`. Returns 0 for
    /// integers, which have no derivatives.
    fn exponent_slope(self) -> Self;
    /// The same number, but gradients don't flow through it.
    #[inline(always)]
    fn detach(self) -> Self {
        self
    }
    /// `self · tangent`, the step of the chain rule from a derivative to a tangent. A tangent of exactly 0 contributes
    /// 0, even if the derivative is infinite or NaN.
    #[inline(always)]
    fn chain(self, tangent: Self) -> Self {
        Self::select(tangent.equal(Self::zero()), Self::zero(), self * tangent)
    }
    /// The same step in the product rule, where `self` is a factor. If the factor is infinite, the product is infinite
    /// too, so a type may use a plain product unless the tangent is known to be 0.
    #[inline(always)]
    fn times(self, tangent: Self) -> Self {
        self.chain(tangent)
    }
}

/// Ordered numbers. [`maximum`](Real::maximum) and [`minimum`](Real::minimum) propagate NaN, as in the Array API.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known to be an ordered number",
    label = "not known to be ordered",
    note = "bound the dtype variable by `Real`, `Int` or `Float`; complex numbers have no order",
    note = "on tensors, call the op: `op::call(x)?`"
)]
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
    /// The larger number; NaN if either is NaN. Ties share the gradient evenly.
    fn maximum(self, other: Self) -> Self;
    /// The smaller number; NaN if either is NaN. Ties share the gradient evenly.
    fn minimum(self, other: Self) -> Self;
    /// `|self|`. The least signed integer returns itself.
    fn abs(self) -> Self;
    /// −1, 0 or 1. NaN and signed zeros return themselves.
    fn sign(self) -> Self;
    /// Rounds down to an integer.
    fn floor(self) -> Self;
    /// Rounds up to an integer.
    fn ceil(self) -> Self;
    /// Rounds to the nearest integer, ties to even.
    fn round(self) -> Self;
    /// Rounds to an integer towards 0.
    fn trunc(self) -> Self;
    /// Python's `//`: rounds towards −∞. For integers, 0 if the divisor is 0, as in NumPy.
    fn floor_divide(self, other: Self) -> Self;
    /// Python's `%`: has the sign of the divisor. For integers, 0 if the divisor is 0, as in NumPy.
    fn remainder(self, other: Self) -> Self;
    /// `lo` below `lo`, `hi` above `hi`, otherwise `self`, also if it is NaN. Rust's `clamp` without its panics.
    #[inline(always)]
    fn clip(self, lo: Self, hi: Self) -> Self {
        Self::select(self.less(lo), lo, Self::select(self.greater(hi), hi, self))
    }
    /// The quotient that leaves a remainder ≥ 0, as in Rust. For integers, 0 if the divisor is 0.
    #[inline(always)]
    fn div_euclid(self, other: Self) -> Self {
        let is_negative = self.remainder(other).less(Self::zero());
        self.floor_divide(other) + Self::select(is_negative, Self::one(), Self::zero())
    }
    /// The remainder ≥ 0, as in Rust. For integers, 0 if the divisor is 0.
    #[inline(always)]
    fn rem_euclid(self, other: Self) -> Self {
        let rest = self.remainder(other);
        Self::select(rest.less(Self::zero()), rest - other, rest)
    }
    /// True if the number is NaN.
    fn isnan(self) -> Self::Mask;
    /// True if the number is +∞ or −∞.
    fn isinf(self) -> Self::Mask;
    /// True if the sign bit is set, as it is for −0 and for some NaN.
    fn signbit(self) -> Self::Mask;
}

/// Integers. A shift by the width or more returns 0 (−1 for a negative number shifted right).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known to be an integer",
    label = "not known to be an integer",
    note = "bound the dtype variable by `Int`"
)]
pub trait Int: Real + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// `self ^ other`.
    fn bitwise_xor(self, other: Self) -> Self;
    /// `self << other`.
    fn left_shift(self, other: Self) -> Self;
    /// `self >> other`; preserves the sign.
    fn right_shift(self, other: Self) -> Self;
}

/// Floats and complex numbers: division and the analytic functions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known to be a floating-point or complex number",
    label = "not known to be floating-point or complex",
    note = "bound the dtype variable by `Field` or `Float`",
    note = "on tensors, call the op: `op::call(x)?`"
)]
pub trait Field: Num + Div<Output = Self> + DivAssign + Neg<Output = Self> {
    /// `self / other` without intermediate overflow. `/` in an element body becomes this method. The `/` operator of
    /// complex numbers squares the divisor, which may overflow.
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
    /// `eˣ − 1`, accurate near 0.
    fn expm1(self) -> Self;
    /// Natural logarithm.
    fn log(self) -> Self;
    /// `ln(1 + x)`, accurate near 0.
    fn log1p(self) -> Self;
    /// Logarithm to base 2.
    fn log2(self) -> Self;
    /// Logarithm to base 10.
    fn log10(self) -> Self;
    /// Logarithm to any base, as a quotient of natural logarithms.
    #[inline(always)]
    fn log_base(self, base: Self) -> Self {
        self.log().divide(base.log())
    }
    /// Sine and cosine of radians.
    #[inline(always)]
    fn sin_cos(self) -> (Self, Self) {
        (self.sin(), self.cos())
    }
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
    /// `1 / (1 + e⁻ˣ)`, accurate in both tails.
    fn sigmoid(self) -> Self;
    /// [`sigmoid`](Field::sigmoid) and its derivative `σ(x) σ(−x)`.
    #[inline(always)]
    fn sigmoid_and_slope(self) -> (Self, Self) {
        let y = self.sigmoid();
        (y, y * (-self).sigmoid())
    }
}

/// [`Field::sigmoid_and_slope`] for ordered numbers. Computes only the smaller of σ(x) and σ(−x); the other follows
/// from it exactly.
#[inline(always)]
pub(crate) fn sigmoid_and_slope<S: Float>(x: S) -> (S, S) {
    let is_right = x.greater(S::zero());
    let small = S::select(is_right, -x, x).sigmoid();
    let large = S::one() - small;
    (S::select(is_right, large, small), small * large)
}

/// Real floating-point numbers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known to be a floating-point number",
    label = "not known to be floating-point",
    note = "bound the dtype variable by `Float`",
    note = "on tensors, call the op: `op::call(x)?`"
)]
pub trait Float: Real + Field + Rem<Output = Self> {
    /// Not a number.
    fn nan() -> Self;
    /// +∞.
    fn infinity() -> Self;
    /// The distance from 1 to the next larger number.
    fn epsilon() -> Self;
    /// True if the number is neither NaN nor infinite.
    fn isfinite(self) -> Self::Mask;
    /// The part after the decimal point, with the sign of the number.
    #[inline(always)]
    fn fract(self) -> Self {
        self - self.trunc()
    }
    /// Converts degrees to radians.
    #[inline(always)]
    fn to_radians(self) -> Self {
        self * lit(std::f64::consts::PI / 180.0)
    }
    /// Converts radians to degrees.
    #[inline(always)]
    fn to_degrees(self) -> Self {
        self * lit(180.0 / std::f64::consts::PI)
    }
    /// `1 / √x`.
    fn rsqrt(self) -> Self;
    /// Cube root.
    fn cbrt(self) -> Self;
    /// `2ˣ`.
    fn exp2(self) -> Self;
    /// `x / (1 + e⁻ˣ)`: `x σ(x)`, accurate in both tails.
    fn silu(self) -> Self;
    /// `ln(1 + eˣ)`, without overflow.
    fn softplus(self) -> Self;
    /// `ln σ(x)`, without overflow.
    fn log_sigmoid(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    /// `1 − erf(x)`, accurate in the right tail.
    fn erfc(self) -> Self;
    /// `Φ(x)`, the distribution function of the standard normal distribution, accurate in the left tail.
    fn normal_cdf(self) -> Self;
    /// `e^(−x²/2) / √(2π)`, the density of the standard normal distribution. It is the derivative of
    /// [`normal_cdf`](Float::normal_cdf), and shares its exponential in compiled loops.
    fn normal_pdf(self) -> Self;
    /// `ln |Γ(x)|`.
    fn lgamma(self) -> Self;
    /// `d/dx ln Γ(x)`.
    fn digamma(self) -> Self;
    /// The `order`-th derivative of [`digamma`](Float::digamma), which is order 0. It makes `lgamma` differentiable any
    /// number of times. Machine numbers support orders up to 12. Higher orders return NaN, as do types that don't
    /// override this method.
    #[inline(always)]
    fn polygamma(self, order: u32) -> Self {
        if order == 0 { self.digamma() } else { Self::nan() }
    }
    /// The bits of the number as an unsigned integer. Gradients don't flow through it. All NaN have the same bits, since the sign and
    /// payload of a computed one differ between CPUs.
    #[inline(always)]
    fn to_bits(self) -> Bits<Self> {
        let number = self.detach();
        Bits::of(Self::select(number.isnan(), Self::nan(), number))
    }
    /// The number with these bits.
    #[inline(always)]
    fn from_bits(bits: Bits<Self>) -> Self {
        bits.float()
    }
    /// The number without its fraction as an integer, in two's complement. 0 for NaN, and for a number that neither an unsigned nor a
    /// signed integer of the width holds.
    #[inline(always)]
    fn to_integer(self) -> Bits<Self> {
        let number = self.detach();
        Bits::of(Self::bits(BitFunction::OfNumber, number, number))
    }
    /// The number with these bits, of which `f32` takes the low half.
    #[doc(hidden)]
    fn of_bits(bits: u64) -> Self;
    /// A function of the bits of two numbers.
    #[doc(hidden)]
    fn bits(function: BitFunction, a: Self, b: Self) -> Self;
    /// Whether the bits are equal.
    #[doc(hidden)]
    fn bits_equal(self, other: Self) -> Self::Mask;
    /// Whether the bits, as unsigned integers, are less.
    #[doc(hidden)]
    fn bits_less(self, other: Self) -> Self::Mask;
    /// The nearest float16, as a number of this type. Its derivative is that of `self`.
    #[doc(hidden)]
    fn as_float16(self) -> Self;
    /// The nearest bfloat16, as a number of this type. Its derivative is that of `self`.
    #[doc(hidden)]
    fn as_bfloat16(self) -> Self;
    /// The angle of the point (`other`, `self`), in radians.
    fn atan2(self, other: Self) -> Self;
    /// `√(x² + y²)` without overflow.
    fn hypot(self, other: Self) -> Self;
    /// `ln(eˣ + eʸ)` without overflow.
    fn logaddexp(self, other: Self) -> Self;
    /// The magnitude of `self` with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// C's `fmod`: has the sign of the dividend.
    fn fmod(self, other: Self) -> Self;
    /// `self * b + c`, rounded once if the machine supports it.
    fn mul_add(self, b: Self, c: Self) -> Self;
}

/// A type that is stored in memory and that loops can run over. Cell bodies use these types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number in memory",
    label = "not a number in memory",
    note = "only the body of a cell op, with parameters such as `&[T]`, runs at numbers in memory; the bodies of other ops also run at numbers that record what is computed"
)]
pub trait Machine: Element<Mask = bool> + Default + PartialEq + Send + Sync + std::fmt::Debug + 'static {
    /// The type in memory: `Self`, but [`Truth`](crate::Truth) for `bool`.
    type Stored: Copy + Send + Sync + 'static;
    /// Converts the value that was read from memory.
    fn load(stored: Self::Stored) -> Self;
    /// Converts to the value that is written to memory.
    fn store(self) -> Self::Stored;
    /// True if loops over the type are compiled for every SIMD level. Only floats set this: memory limits the loops of
    /// the other types already at the baseline, and every clone costs compile time and binary size.
    const VECTORIZE: bool = false;
    /// True if sums and products do not depend on the order of elements: integers wrap.
    const IS_EXACT: bool = false;
    /// The number of bits in a [rank](Machine::rank); 0 for types without an order.
    const RANK_BITS: u32 = 0;
    /// An unsigned integer that sorts as the numbers do: −0 ranks as 0, and every NaN ranks above all other numbers.
    #[inline(always)]
    fn rank(self) -> u64 {
        0
    }
    /// The number without its fraction, as by Rust's `as`: NaN is 0. 0 for types without an order.
    #[inline(always)]
    fn truncated(self) -> i128 {
        0
    }
    /// The only number with this rank; `None` if several numbers share it, as zeros and NaN do.
    #[inline(always)]
    fn of_rank(_rank: u64) -> Option<Self> {
        None
    }
}

/// Converts a constant to `T`. A literal in a body becomes a call of this function.
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
        // A loop over a list, such as an attribute `&[f64]`, binds references.
        impl From<&$t> for Const {
            #[inline(always)]
            fn from(value: &$t) -> Self { (*value).into() }
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
