//! Implements the algebra for machine numbers.
//!
//! Integers wrap and never panic. Floats follow the special cases of the Array API and, where it defines none, NumPy.

mod bits;

use self::bits::bit_functions;
#[cfg(feature = "engine")]
use crate::code::Number;
use crate::math::binary::{Binary, Word};
use crate::math::{double, single};
use crate::number::Truth;
use crate::number::scalar::{Const, Element, Field, Float, Int, Machine, Mask, Num, Real, sigmoid_and_slope};
use crate::number::special;

impl Mask for bool {
    #[inline(always)]
    fn constant(value: bool) -> Self {
        value
    }
    #[inline(always)]
    fn is_known_false(self) -> bool {
        !self
    }
}

impl Element for bool {
    type Mask = bool;
    #[inline(always)]
    fn constant(value: Const) -> Self {
        match value {
            Const::Bool(v) => v,
            Const::Int(v) => v != 0,
            Const::Float(v) => v != 0.0,
        }
    }
    #[inline(always)]
    fn equal(self, other: Self) -> bool {
        self == other
    }
    #[inline(always)]
    fn truthy(self) -> bool {
        self
    }
    #[inline(always)]
    fn select(mask: bool, a: Self, b: Self) -> Self {
        if mask { a } else { b }
    }
}

impl Machine for bool {
    type Stored = Truth;
    #[inline(always)]
    fn load(stored: Truth) -> Self {
        stored.get()
    }
    #[inline(always)]
    fn store(self) -> Truth {
        self.into()
    }
}

/// The part of `Machine` for types that memory stores unchanged.
macro_rules! stored_as_it_is {
    () => {
        type Stored = Self;
        #[inline(always)]
        fn load(stored: Self) -> Self {
            stored
        }
        #[inline(always)]
        fn store(self) -> Self {
            self
        }
    };
}
pub(crate) use stored_as_it_is;

/// `base` to the power `exponent` by repeated squaring.
#[inline(always)]
pub(crate) fn power<T: Num>(mut base: T, mut exponent: u64) -> T {
    let mut result = T::one();
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

/// Methods of one shape, `name(self, …) -> Type { body }`, each inlined into its caller's loop.
macro_rules! methods {
    ($($name:ident($self:ident $(, $arg:ident: $ty:ty)*) -> $ret:ty { $body:expr })*) => {$(
        #[inline(always)]
        fn $name($self $(, $arg: $ty)*) -> $ret { $body }
    )*};
}

macro_rules! integer {
    ($($t:ident)*) => {$(
        impl Element for $t {
            type Mask = bool;
            methods! {
                equal(self, other: Self) -> bool { self == other }
                truthy(self) -> bool { self != 0 }
            }
            #[inline(always)]
            fn constant(value: Const) -> Self {
                match value {
                    Const::Bool(v) => v as $t,
                    Const::Int(v) => v.clamp($t::MIN as i128, $t::MAX as i128) as $t,
                    Const::Float(v) => v as $t,
                }
            }
            #[inline(always)]
            fn select(mask: bool, a: Self, b: Self) -> Self {
                if mask { a } else { b }
            }
        }

        impl Machine for $t {
            stored_as_it_is!();
            const IS_EXACT: bool = true;
            const RANK_BITS: u32 = $t::BITS;
            methods! {
                // Signed numbers with a flipped sign bit; bits above the type's width are 0.
                rank(self) -> u64 { (self ^ $t::MIN) as u64 & (u64::MAX >> (64 - $t::BITS)) }
                truncated(self) -> i128 { self as i128 }
            }
            #[inline(always)]
            fn of_rank(rank: u64) -> Option<Self> {
                Some(rank as $t ^ $t::MIN)
            }
        }

        #[allow(unused_comparisons, clippy::absurd_extreme_comparisons)]
        impl Num for $t {
            methods! {
                negative(self) -> Self { self.wrapping_neg() }
                pow(self, exponent: Self) -> Self {
                    if exponent < 0 { self.powi(exponent as i64) } else { power(self, exponent as u64) }
                }
                exponent_slope(self) -> Self { 0 }
                conj(self) -> Self { self }
                powi(self, exponent: i64) -> Self {
                    if exponent >= 0 {
                        power(self, exponent as u64)
                    } else if self == 1 {
                        1
                    } else if self.wrapping_add(1) == 0 && $t::MIN != 0 {
                        if exponent & 1 == 0 { 1 } else { self }
                    } else {
                        0
                    }
                }
            }
        }

        // Predicates of the sign are false for unsigned integers.
        #[allow(unused_comparisons, clippy::absurd_extreme_comparisons)]
        impl Real for $t {
            methods! {
                less(self, other: Self) -> bool { self < other }
                less_equal(self, other: Self) -> bool { self <= other }
                maximum(self, other: Self) -> Self { if self > other { self } else { other } }
                minimum(self, other: Self) -> Self { if self < other { self } else { other } }
                abs(self) -> Self { if self < 0 { self.wrapping_neg() } else { self } }
                sign(self) -> Self { ((self > 0) as $t).wrapping_sub((self < 0) as $t) }
                floor(self) -> Self { self }
                ceil(self) -> Self { self }
                round(self) -> Self { self }
                trunc(self) -> Self { self }
                floor_divide(self, other: Self) -> Self {{
                    let divisor = if other == 0 { 1 } else { other };
                    let quotient = self.wrapping_div(divisor);
                    let inexact = self.wrapping_rem(divisor) != 0;
                    let below = inexact & ((self < 0) != (divisor < 0));
                    if other == 0 { 0 } else { quotient.wrapping_sub(below as $t) }
                }}
                remainder(self, other: Self) -> Self {{
                    let divisor = if other == 0 { 1 } else { other };
                    let rest = self.wrapping_rem(divisor);
                    let foreign = (rest != 0) & ((self < 0) != (divisor < 0));
                    rest.wrapping_add(if foreign { divisor } else { 0 })
                }}
                isnan(self) -> bool { false }
                isinf(self) -> bool { false }
                signbit(self) -> bool { self < 0 }
            }
        }

        #[allow(unused_comparisons, clippy::absurd_extreme_comparisons)]
        impl Int for $t {
            methods! {
                bitwise_xor(self, other: Self) -> Self { self ^ other }
                // A negative count is a large one when cast to unsigned.
                left_shift(self, other: Self) -> Self {
                    if other as u64 >= $t::BITS as u64 { 0 } else { self.wrapping_shl(other as u32) }
                }
                right_shift(self, other: Self) -> Self {
                    if other as u64 >= $t::BITS as u64 {
                        if self < 0 { !0 } else { 0 }
                    } else {
                        self.wrapping_shr(other as u32)
                    }
                }
            }
        }
    )*};
}
integer!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Functions of one argument that call a library: `name = path`.
macro_rules! calls {
    ($($name:ident = $path:path),* $(,)?) => {$(
        #[inline(always)]
        fn $name(self) -> Self { $path(self) }
    )*};
}

/// `Machine` for floats.
macro_rules! stored_float {
    ($($t:ident)*) => {$(
        impl Machine for $t {
            stored_as_it_is!();
            const VECTORIZE: bool = true;
            const RANK_BITS: u32 = 8 * size_of::<$t>() as u32;
            methods! {
                rank(self) -> u64 {{
                    // Adding 0 turns −0 into +0. Negative numbers have all bits flipped, positive numbers the sign bit.
                    let bits = (self + 0.0).to_bits();
                    let sign = bits >> (Self::RANK_BITS - 1);
                    let rank = bits ^ (sign.wrapping_neg() | 1 << (Self::RANK_BITS - 1));
                    let all = u64::MAX >> (64 - Self::RANK_BITS);
                    if self.is_nan() { all } else { rank as u64 }
                }}
                truncated(self) -> i128 { self as i128 }
            }
            #[inline(always)]
            fn of_rank(rank: u64) -> Option<Self> {
                let sign = 1 << (Self::RANK_BITS - 1);
                let value = $t::from_bits(if rank & sign != 0 { rank ^ sign } else { !rank } as _);
                if value == 0.0 || value.is_nan() { None } else { Some(value) }
            }
        }
    )*};
}
stored_float!(f32 f64);

/// The bits of NaN if a number is NaN, else those of 0.
#[inline(always)]
fn nan_bits<F: Binary>(x: F, [zero, nan]: [F::Native; 2]) -> F::Bits {
    F::Bits::select(x.equal(x), F::of(zero).to_bits(), F::of(nan).to_bits())
}

/// Whether two truth values differ.
#[inline(always)]
fn differ<M: Mask>(a: M, b: M) -> M {
    (a | b) & !(a & b)
}

/// The algebra of floats. `$t` is `$native`, or a number of a machine form that stands for it: all methods are functions of a
/// [`Binary`].
macro_rules! float {
    ($t:ty, $native:ident, $word:ident, $math:ident, $digamma:path, $polygamma:path) => {
        impl Element for $t {
            type Mask = <$t as Binary>::Mask;
            methods! {
                equal(self, other: Self) -> Self::Mask { Binary::equal(self, other) }
                truthy(self) -> Self::Mask { !Binary::equal(self, Binary::of(0.0)) }
            }
            #[inline(always)]
            fn constant(value: Const) -> Self {
                Binary::of(match value {
                    Const::Bool(v) => v as u8 as $native,
                    Const::Int(v) => v as $native,
                    Const::Float(v) => v as $native,
                })
            }
            #[inline(always)]
            fn select(mask: Self::Mask, a: Self, b: Self) -> Self {
                Binary::select(mask, a, b)
            }
        }

        impl Num for $t {
            methods! {
                negative(self) -> Self { -self }
                conj(self) -> Self { self }
                powi(self, exponent: i64) -> Self {{
                    let result = power(self, exponent.unsigned_abs());
                    if exponent < 0 { Self::one() / result } else { result }
                }}
                pow(self, exponent: Self) -> Self { $math::pow(self, exponent) }
                exponent_slope(self) -> Self { $math::log(self) }
            }
        }

        impl Real for $t {
            calls!(
                abs = Binary::abs,
                floor = Binary::floor,
                ceil = Binary::ceil,
                round = Binary::round,
                trunc = Binary::trunc,
            );
            methods! {
                less(self, other: Self) -> Self::Mask { Binary::less(self, other) }
                less_equal(self, other: Self) -> Self::Mask { Binary::less_equal(self, other) }
                // A NaN in `other` is returned because comparisons with it are false. A NaN in `self` is propagated by
                // its bits: selecting it would compile to a conditional store, which is slow.
                maximum(self, other: Self) -> Self {{
                    let larger: Self = Binary::select(Binary::less(other, self), self, other);
                    Binary::from_bits(Binary::to_bits(larger) | nan_bits(self, [0.0, $native::NAN]))
                }}
                minimum(self, other: Self) -> Self {{
                    let smaller: Self = Binary::select(Binary::less(self, other), self, other);
                    Binary::from_bits(Binary::to_bits(smaller) | nan_bits(self, [0.0, $native::NAN]))
                }}
                sign(self) -> Self {{
                    let [zero, one] = [0.0, 1.0].map(<Self as Binary>::of);
                    let negative = Binary::select(Binary::less(self, zero), -one, self);
                    Binary::select(Binary::less(zero, self), one, negative)
                }}
                floor_divide(self, other: Self) -> Self {{
                    let [zero, one, half] = [0.0, 1.0, 0.5].map(<Self as Binary>::of);
                    let is_negative = |x: Self| Binary::less(x, zero);
                    let rest = self % other;
                    let whole = (self - rest) / other;
                    let below = !Binary::equal(rest, zero) & differ(is_negative(rest), is_negative(other));
                    let whole: Self = Binary::select(below, whole - one, whole);
                    // `whole` is an integer except for its own rounding error.
                    let floor = Binary::floor(whole);
                    let floor = Binary::select(Binary::less(half, whole - floor), floor + one, floor);
                    let ratio = self / other;
                    let signed = Binary::select(Binary::equal(whole, zero), Binary::copysign(zero, ratio), floor);
                    Binary::select(Binary::equal(other, zero), ratio, signed)
                }}
                remainder(self, other: Self) -> Self {{
                    let zero: Self = Binary::of(0.0);
                    let rest = self % other;
                    let differ = differ(Binary::less(rest, zero), Binary::less(other, zero));
                    let shifted = Binary::select(differ, rest + other, rest);
                    Binary::select(Binary::equal(rest, zero), Binary::copysign(zero, other), shifted)
                }}
                isnan(self) -> Self::Mask { !Binary::equal(self, self) }
                isinf(self) -> Self::Mask { Binary::equal(Binary::abs(self), Binary::of($native::INFINITY)) }
                signbit(self) -> Self::Mask { Binary::to_bits(self).is_negative() }
            }
        }

        impl Field for $t {
            calls!(
                sqrt = Binary::sqrt,
                exp = $math::exp,
                expm1 = $math::expm1,
                log = $math::log,
                log1p = $math::log1p,
                log2 = $math::log2,
                log10 = $math::log10,
                sin = $math::sin,
                cos = $math::cos,
                tan = $math::tan,
                asin = $math::asin,
                acos = $math::acos,
                atan = $math::atan,
                sinh = $math::sinh,
                cosh = $math::cosh,
                tanh = $math::tanh,
                asinh = $math::asinh,
                acosh = $math::acosh,
                atanh = $math::atanh,
                sigmoid = $math::sigmoid,
            );
            methods! {
                sigmoid_and_slope(self) -> (Self, Self) { sigmoid_and_slope(self) }
            }
        }

        impl Float for $t {
            calls!(
                cbrt = $math::cbrt,
                exp2 = $math::exp2,
                erf = $math::erf,
                erfc = $math::erfc,
                normal_cdf = $math::normal_cdf,
                normal_pdf = $math::normal_pdf,
                lgamma = $math::lgamma,
                silu = $math::silu,
                softplus = $math::softplus,
                log_sigmoid = $math::log_sigmoid,
                digamma = $digamma,
                as_float16 = $math::as_float16,
                as_bfloat16 = $math::as_bfloat16,
            );
            #[inline(always)]
            fn nan() -> Self {
                Binary::of($native::NAN)
            }
            #[inline(always)]
            fn infinity() -> Self {
                Binary::of($native::INFINITY)
            }
            #[inline(always)]
            fn epsilon() -> Self {
                Binary::of($native::EPSILON)
            }
            bit_functions! { $native $word }
            methods! {
                isfinite(self) -> Self::Mask { Binary::less(Binary::abs(self), Binary::of($native::INFINITY)) }
                rsqrt(self) -> Self { Self::one() / Binary::sqrt(self) }
                polygamma(self, order: u32) -> Self { $polygamma(self, order) }
                atan2(self, other: Self) -> Self { $math::atan2(self, other) }
                hypot(self, other: Self) -> Self { $math::hypot(self, other) }
                logaddexp(self, other: Self) -> Self { $math::logaddexp(self, other) }
                copysign(self, sign: Self) -> Self { Binary::copysign(self, sign) }
                fmod(self, other: Self) -> Self { self % other }
                mul_add(self, b: Self, c: Self) -> Self { Binary::mul_add(self, b, c) }
            }
        }
    };
}
float!(f32, f32, u32, single, special::digamma_f32, special::polygamma_f32);
float!(f64, f64, u64, double, special::digamma, special::polygamma);
#[cfg(feature = "engine")]
float!(Number<f32>, f32, u32, single, Number::refused, Number::refused_order);
#[cfg(feature = "engine")]
float!(Number<f64>, f64, u64, double, Number::refused, Number::refused_order);
