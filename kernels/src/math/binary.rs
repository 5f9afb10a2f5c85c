//! The arithmetic that elementary functions are written in.
//!
//! [`Binary`] is a binary floating-point format of IEEE 754, and [`Word`] its bits as an unsigned integer. rustc compiles the
//! functions at `f32` and `f64`. At the values of a [machine form](crate::machine) they record their instructions, so
//! that machine code which is assembled at run time comes from the same source.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Shl, Shr, Sub};

use super::single;
use crate::number::scalar::Mask;

/// A floating-point number. The operators also take a native number on their right.
pub trait Binary:
    Copy
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Add<Self::Native, Output = Self>
    + Sub<Self::Native, Output = Self>
    + Mul<Self::Native, Output = Self>
    + Div<Self::Native, Output = Self>
{
    /// `f32` or `f64`.
    type Native: Copy;
    /// Its bits.
    type Bits: Word<Mask = Self::Mask>;
    /// The result of a comparison.
    type Mask: Mask;
    /// A constant.
    fn of(value: Self::Native) -> Self;
    /// The number with these bits.
    fn from_bits(bits: Self::Bits) -> Self;
    /// Its bits.
    fn to_bits(self) -> Self::Bits;
    /// `self · a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// Without its sign.
    fn abs(self) -> Self;
    /// With the sign of another number.
    fn copysign(self, sign: Self) -> Self;
    /// The largest integer that is at most `self`.
    fn floor(self) -> Self;
    /// The smallest integer that is at least `self`.
    fn ceil(self) -> Self;
    /// The integer between 0 and `self` that is nearest to `self`.
    fn trunc(self) -> Self;
    /// The nearest integer, ties to even.
    fn round(self) -> Self;
    /// `self < other`
    fn less(self, other: Self) -> Self::Mask;
    /// `self <= other`
    fn less_equal(self, other: Self) -> Self::Mask;
    /// `self == other`
    fn equal(self, other: Self) -> Self::Mask;
    /// `a` if the condition holds, else `b`; both are computed.
    fn select(condition: Self::Mask, a: Self, b: Self) -> Self;
}

/// The bits of a number. `+` and `-` must not overflow, and the operands of `*` must be below 2³².
pub trait Word:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// `u32` or `u64`.
    type Native: Copy;
    /// The result of a comparison.
    type Mask: Mask;
    /// A constant.
    fn of(bits: Self::Native) -> Self;
    /// `self + other`, without the carry.
    fn wrapping_add(self, other: Self) -> Self;
    /// `self - other`, without the borrow.
    fn wrapping_sub(self, other: Self) -> Self;
    /// `self << count` for a count below the width.
    fn shifted_left(self, count: Self) -> Self;
    /// `self >> count` for a count below the width.
    fn shifted_right(self, count: Self) -> Self;
    /// `self < other`
    fn less(self, other: Self) -> Self::Mask;
    /// `self == other`
    fn equal(self, other: Self) -> Self::Mask;
    /// True if the highest bit is set.
    fn is_negative(self) -> Self::Mask;
    /// `a` if the condition holds, else `b`; both are computed.
    fn select(condition: Self::Mask, a: Self, b: Self) -> Self;
}

/// `f32`, or a value that stands for one.
pub trait Binary32: Binary<Native = f32, Bits: Word<Native = u32>> {
    /// The numbers of twice the width.
    type Wide: Binary64<Mask = Self::Mask>;
    /// The same number, in twice the width.
    fn wide(self) -> Self::Wide;
    /// The nearest number of half the width.
    fn narrow(wide: Self::Wide) -> Self;
    /// The number nearest to the bits as a signed integer.
    fn of_signed(bits: Self::Bits) -> Self;
    /// The nearest float16.
    fn nearest_float16(self) -> Self {
        single::nearest_float16(self)
    }
}

/// `f64`, or a value that stands for one.
pub trait Binary64: Binary<Native = f64, Bits: Word<Native = u64>> {}

macro_rules! native {
    ($($float:ident $word:ident $signed:ident;)*) => {$(
        impl Binary for $float {
            type Native = $float;
            type Bits = $word;
            type Mask = bool;
            native! { @methods
                of(value: $float) -> Self = value;
                from_bits(bits: $word) -> Self = $float::from_bits(bits);
                to_bits(self: Self) -> $word = $float::to_bits(self);
                mul_add(self: Self, a: Self, b: Self) -> Self = $float::mul_add(self, a, b);
                sqrt(self: Self) -> Self = $float::sqrt(self);
                abs(self: Self) -> Self = $float::abs(self);
                copysign(self: Self, sign: Self) -> Self = $float::copysign(self, sign);
                floor(self: Self) -> Self = $float::floor(self);
                ceil(self: Self) -> Self = $float::ceil(self);
                trunc(self: Self) -> Self = $float::trunc(self);
                round(self: Self) -> Self = $float::round_ties_even(self);
                less(self: Self, other: Self) -> bool = self < other;
                less_equal(self: Self, other: Self) -> bool = self <= other;
                equal(self: Self, other: Self) -> bool = self == other;
                select(condition: bool, a: Self, b: Self) -> Self = if condition { a } else { b };
            }
        }

        impl Word for $word {
            type Native = $word;
            type Mask = bool;
            native! { @methods
                of(bits: $word) -> Self = bits;
                wrapping_add(self: Self, other: Self) -> Self = $word::wrapping_add(self, other);
                wrapping_sub(self: Self, other: Self) -> Self = $word::wrapping_sub(self, other);
                shifted_left(self: Self, count: Self) -> Self = self << count;
                shifted_right(self: Self, count: Self) -> Self = self >> count;
                less(self: Self, other: Self) -> bool = self < other;
                equal(self: Self, other: Self) -> bool = self == other;
                is_negative(self: Self) -> bool = (self as $signed) < 0;
                select(condition: bool, a: Self, b: Self) -> Self = if condition { a } else { b };
            }
        }
    )*};
    (@methods $($name:ident($($x:tt: $t:ty),*) -> $out:ty = $y:expr;)*) => {$(
        #[inline(always)]
        fn $name($($x: $t),*) -> $out { $y }
    )*};
}
native! { f32 u32 i32; f64 u64 i64; }

impl Binary32 for f32 {
    type Wide = f64;
    #[inline(always)]
    fn wide(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn narrow(wide: f64) -> f32 {
        wide as f32
    }
    #[inline(always)]
    fn of_signed(bits: u32) -> f32 {
        bits as i32 as f32
    }
}

impl Binary64 for f64 {}
