//! [`Bits`]: the bits of a float of a body, as an unsigned integer.
//!
//! Such an integer is represented by the float that has these bits, so everything else sees a body of floats: its program, its loops,
//! its machine code.

use std::ops::{Add, AddAssign, BitAnd, BitOr, Mul, MulAssign, Not, Sub, SubAssign};

use crate::number::scalar::{Const, Element, Float, Int, Num, Real};

/// The bits of a float `T` as an unsigned integer: of 32 bits for `f32`, of 64 bits for `f64`. Arithmetic wraps. Gradients don't flow
/// through bits.
///
/// ```
/// use minitensor_kernels::{Float, Int, lit};
///
/// /// Without the sign.
/// fn magnitude<T: Float>(x: T) -> T {
///     T::from_bits(x.to_bits().left_shift(lit(1)).right_shift(lit(1)))
/// }
/// assert_eq!((magnitude(-2.5f32), magnitude(-2.5f64)), (2.5, 2.5));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bits<T>(T);

/// A function of the bits of two floats, whose result is the bits of a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitFunction {
    /// `a & b`
    And,
    /// `a | b`
    Or,
    /// `a ^ b`
    Xor,
    /// `a + b`, wrapping.
    Add,
    /// `a − b`, wrapping.
    Subtract,
    /// `a · b`, wrapping.
    Multiply,
    /// `a / b`, rounded down; 0 if `b` is 0.
    Divide,
    /// `a % b`; 0 if `b` is 0.
    Remainder,
    /// `a << b`; 0 if `b` is the width or more.
    ShiftLeft,
    /// `a >> b`; 0 if `b` is the width or more.
    ShiftRight,
    /// The number `a` without its fraction, in two's complement; 0 for NaN, and for a number that neither an unsigned nor a signed integer
    /// of the width holds. `b` is not used.
    OfNumber,
    /// The integer as a number, rounded to the nearest. `b` is not used.
    ToNumber,
}

impl<T: Float> Bits<T> {
    /// The bits of a float.
    #[inline(always)]
    pub(crate) fn of(float: T) -> Self {
        Bits(float)
    }

    /// The float with these bits.
    #[inline(always)]
    pub(crate) fn float(self) -> T {
        self.0
    }

    /// The integer as a number, rounded to the nearest.
    #[inline(always)]
    pub fn to_number(self) -> T {
        T::bits(BitFunction::ToNumber, self.0, self.0)
    }

    #[inline(always)]
    fn with(self, function: BitFunction, other: Self) -> Self {
        Bits(T::bits(function, self.0, other.0))
    }
}

impl<T: Float> Element for Bits<T> {
    type Mask = T::Mask;

    /// An integer modulo 2 to the width.
    #[inline(always)]
    fn constant(value: Const) -> Self {
        Bits(T::of_bits(match value {
            Const::Bool(v) => v.into(),
            Const::Int(v) => v as u64,
            Const::Float(v) => v as i128 as u64,
        }))
    }
    #[inline(always)]
    fn equal(self, other: Self) -> T::Mask {
        T::bits_equal(self.0, other.0)
    }
    #[inline(always)]
    fn truthy(self) -> T::Mask {
        self.not_equal(Self::zero())
    }
    #[inline(always)]
    fn select(mask: T::Mask, a: Self, b: Self) -> Self {
        Bits(T::select(mask, a.0, b.0))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $function:ident $(, $assign:ident $assign_method:ident)?;)*) => {$(
        impl<T: Float> $trait for Bits<T> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self { self.with(BitFunction::$function, other) }
        }
        $(
            impl<T: Float> $assign for Bits<T> {
                #[inline(always)]
                fn $assign_method(&mut self, other: Self) { *self = self.with(BitFunction::$function, other); }
            }
        )?
    )*};
}
operators! {
    Add add Add, AddAssign add_assign; Sub sub Subtract, SubAssign sub_assign; Mul mul Multiply, MulAssign mul_assign;
    BitAnd bitand And; BitOr bitor Or;
}

impl<T: Float> Not for Bits<T> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        self.bitwise_xor(Bits(T::of_bits(u64::MAX)))
    }
}

macro_rules! methods {
    ($($name:ident($self:ident $(, $arg:ident: $ty:ty)*) -> $ret:ty { $body:expr })*) => {$(
        #[inline(always)]
        fn $name($self $(, $arg: $ty)*) -> $ret { $body }
    )*};
}

impl<T: Float> Num for Bits<T> {
    methods! {
        negative(self) -> Self { Self::zero() - self }
        conj(self) -> Self { self }
        // `1 / selfⁿ`, rounded down, is 0 except for 1.
        powi(self, exponent: i64) -> Self {{
            let is_one = self.equal(Self::one());
            let inverse = Self::select(is_one, Self::one(), Self::zero());
            if exponent < 0 { inverse } else { crate::number::machine::power(self, exponent as u64) }
        }}
        // By the bits of the exponent.
        pow(self, exponent: Self) -> Self {{
            let (mut result, mut base) = (Self::one(), self);
            for bit in 0..64 {
                let is_set = (exponent.right_shift(Bits(T::of_bits(bit))) & Self::one()).truthy();
                result = Self::select(is_set, result * base, result);
                base *= base;
            }
            result
        }}
        exponent_slope(self) -> Self { Self::zero() }
    }
}

impl<T: Float> Real for Bits<T> {
    methods! {
        less(self, other: Self) -> T::Mask { T::bits_less(self.0, other.0) }
        less_equal(self, other: Self) -> T::Mask { !T::bits_less(other.0, self.0) }
        maximum(self, other: Self) -> Self { Self::select(self.less(other), other, self) }
        minimum(self, other: Self) -> Self { Self::select(other.less(self), other, self) }
        abs(self) -> Self { self }
        sign(self) -> Self { Self::select(self.truthy(), Self::one(), Self::zero()) }
        floor(self) -> Self { self }
        ceil(self) -> Self { self }
        round(self) -> Self { self }
        trunc(self) -> Self { self }
        floor_divide(self, other: Self) -> Self { self.with(BitFunction::Divide, other) }
        remainder(self, other: Self) -> Self { self.with(BitFunction::Remainder, other) }
        isnan(self) -> T::Mask { self.not_equal(self) }
        isinf(self) -> T::Mask { self.not_equal(self) }
        signbit(self) -> T::Mask { self.not_equal(self) }
    }
}

impl<T: Float> Int for Bits<T> {
    methods! {
        bitwise_xor(self, other: Self) -> Self { self.with(BitFunction::Xor, other) }
        left_shift(self, other: Self) -> Self { self.with(BitFunction::ShiftLeft, other) }
        right_shift(self, other: Self) -> Self { self.with(BitFunction::ShiftRight, other) }
    }
}
