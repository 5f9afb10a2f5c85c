//! Integers that record each operation in a machine form.

use std::marker::PhantomData;
use std::ops::{Add, AddAssign, BitAnd, BitOr, Mul, MulAssign, Not, Sub, SubAssign};

use super::form::{Id, Op, Width, push, refuse};
use super::number::{Condition, Number};
use crate::math::binary::Binary;
use crate::number::machine::power;
use crate::number::scalar::{Const, Element, Int, Mask, Num, Real};
use crate::program::Storage;

/// An integer of a machine form. `I` is its type in memory. Registers hold it in 32 or 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Integer<I> {
    pub id: Id,
    /// Whether the bits above those of `I` are its sign or, if it has none, 0. Sums, products and bitwise operations do not read them.
    is_extended: bool,
    memory: PhantomData<I>,
}

/// A type of integers.
pub trait Whole: Copy + PartialEq + Num + 'static {
    /// The number of bits.
    const BITS: u32;
    /// Whether it has a sign.
    const IS_SIGNED: bool;
    /// How it is stored in memory, for a program that computes in [`Whole::WIDTH`].
    const STORAGE: Storage;
    /// In which width it is computed.
    const WIDTH: Width = if Self::BITS == 64 { Width::Double } else { Width::Single };
    /// Its bits, extended to 64.
    fn extended(self) -> u64;
}

macro_rules! whole {
    ($($t:ident $storage:ident;)*) => {$(
        impl Whole for $t {
            const BITS: u32 = $t::BITS;
            const IS_SIGNED: bool = $t::MIN != 0;
            const STORAGE: Storage = Storage::$storage;
            fn extended(self) -> u64 { self as u64 }
        }
    )*};
}
whole! { i8 Int8; i16 Int16; i32 Own; i64 Own; u8 UInt8; u16 UInt16; u32 Own; u64 Own; }

impl<I: Whole> Integer<I> {
    /// The integer that a node computes. It is extended, as one that is loaded from memory.
    pub fn of_node(id: Id) -> Self {
        Integer { id, is_extended: true, memory: PhantomData }
    }

    fn of(op: Op, operands: &[Id]) -> Self {
        Self::of_node(push(op, I::WIDTH, operands))
    }

    /// The result of an operation that may change the bits above those of `I`.
    fn wrapping(op: Op, operands: &[Id]) -> Self {
        Integer { is_extended: I::BITS == I::WIDTH.bits(), ..Self::of(op, operands) }
    }

    fn of_bits(bits: u64) -> Self {
        Self::of(Op::Constant(bits & (u64::MAX >> (64 - I::WIDTH.bits()))), &[])
    }

    fn native(value: I) -> Self {
        Self::of_bits(value.extended())
    }

    /// The same integer with the bits above those of `I`.
    fn extended(self) -> Self {
        match self.is_extended {
            true => self,
            false if I::IS_SIGNED => {
                let count = I::WIDTH.bits() - I::BITS;
                let high = Self::of(Op::ShiftLeft(count), &[self.id]);
                Self::of(Op::ShiftRightSignedBy, &[high.id, Self::of_bits(count.into()).id])
            }
            false => Self::of(Op::And, &[self.id, Self::of_bits(u64::MAX >> (64 - I::BITS)).id]),
        }
    }

    /// An operation on bits. The result is extended if both operands are.
    fn bitwise(op: Op, x: Self, y: Self) -> Self {
        Integer { is_extended: x.is_extended && y.is_extended, ..Self::of(op, &[x.id, y.id]) }
    }

    fn test(op: Op, x: Self, y: Self) -> Condition {
        Condition(push(op, I::WIDTH, &[x.extended().id, y.extended().id]))
    }

    /// The result of a function that has no form.
    fn refused(self) -> Self {
        refuse();
        self
    }

    /// As a float, exactly. Its type has at most 32 bits.
    fn wide(self) -> Number<f64> {
        const WHOLE: f64 = (1u64 << 52) as f64;
        let sign = if I::IS_SIGNED { Width::Single.sign() } else { 0 };
        // As a number from 0 on.
        let raised = Self::of(Op::Xor, &[self.extended().id, Self::of_bits(sign).id]);
        let bits = push(Op::WidenBits, Width::Double, &[raised.id]);
        let bits = push(Op::Or, Width::Double, &[bits, <Number<f64> as Binary>::of(WHOLE).0]);
        Number::of_node(bits) - (WHOLE + sign as f64)
    }

    /// The quotient, rounded down, and the divisor: `other`, or 1 if that is 0.
    fn divided(self, other: Self) -> (Self, Self) {
        let divisor = Self::select(other.truthy(), other, Self::one());
        if I::BITS > 32 {
            return (self.refused(), divisor);
        }
        // A quotient x / y that is no integer differs from each integer by 1 / y or more, which is 2⁻³² of its value or more. So it is not
        // rounded to an integer. The lower half of the bits of the sum is the integer modulo 2³².
        let sum = Binary::floor(self.wide() / divisor.wide()) + 1.5 * (1u64 << 52) as f64;
        (Self::wrapping(Op::NarrowBits, &[sum.0]), divisor)
    }

    fn is_negative(self) -> Condition {
        if I::IS_SIGNED { self.less(Self::zero()) } else { Condition::constant(false) }
    }
}

impl<I: Whole> Element for Integer<I> {
    type Mask = Condition;
    fn constant(value: Const) -> Self {
        Self::native(I::constant(value))
    }
    fn equal(self, other: Self) -> Condition {
        Self::test(Op::EqualInt, self, other)
    }
    fn truthy(self) -> Condition {
        self.not_equal(Self::zero())
    }
    fn select(mask: Condition, a: Self, b: Self) -> Self {
        let chosen = Self::of(Op::Select, &[mask.0, a.id, b.id]);
        Integer { is_extended: a.is_extended && b.is_extended, ..chosen }
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $made:ident $op:ident $(, $assign:ident $assign_method:ident)?;)*) => {$(
        impl<I: Whole> $trait for Integer<I> {
            type Output = Self;
            fn $method(self, other: Self) -> Self { operators!(@ $made $op self other) }
        }
        $(
            impl<I: Whole> $assign for Integer<I> {
                fn $assign_method(&mut self, other: Self) { *self = self.$method(other); }
            }
        )?
    )*};
    (@ wrapping $op:ident $x:ident $y:ident) => { Self::wrapping(Op::$op, &[$x.id, $y.id]) };
    (@ bitwise $op:ident $x:ident $y:ident) => { Self::bitwise(Op::$op, $x, $y) };
}
operators! {
    Add add wrapping AddInt, AddAssign add_assign; Sub sub wrapping SubtractInt, SubAssign sub_assign;
    Mul mul wrapping MultiplyWrapping, MulAssign mul_assign;
    BitAnd bitand bitwise And; BitOr bitor bitwise Or;
}

impl<I: Whole> Not for Integer<I> {
    type Output = Self;
    fn not(self) -> Self {
        self.bitwise_xor(Self::native(I::one().negative()))
    }
}

macro_rules! methods {
    ($($name:ident($self:ident $(, $arg:ident: $ty:ty)*) -> $ret:ty { $body:expr })*) => {$(
        fn $name($self $(, $arg: $ty)*) -> $ret { $body }
    )*};
}

impl<I: Whole> Num for Integer<I> {
    methods! {
        negative(self) -> Self { Self::zero() - self }
        conj(self) -> Self { self }
        powi(self, exponent: i64) -> Self {{
            if exponent >= 0 {
                return power(self, exponent as u64);
            }
            // 1 / selfⁿ, rounded towards 0. Only those of 1 and −1 are not 0.
            let minus_one = I::one().negative();
            let inverse = Self::native(minus_one.powi(exponent));
            let of_others = Self::select(self.equal(Self::native(minus_one)), inverse, Self::zero());
            Self::select(self.equal(Self::one()), Self::one(), of_others)
        }}
        pow(self, _exponent: Self) -> Self { self.refused() }
        exponent_slope(self) -> Self { Self::zero() }
    }
}

impl<I: Whole> Real for Integer<I> {
    methods! {
        less(self, other: Self) -> Condition {
            // An unsigned integer of fewer bits than the width is a signed one of the width.
            if I::IS_SIGNED || I::BITS < I::WIDTH.bits() {
                Self::test(Op::GreaterSigned, other, self)
            } else {
                Self::test(Op::LessInt, self, other)
            }
        }
        less_equal(self, other: Self) -> Condition { !other.less(self) }
        maximum(self, other: Self) -> Self { Self::select(other.less(self), self, other) }
        minimum(self, other: Self) -> Self { Self::select(self.less(other), self, other) }
        abs(self) -> Self { if I::IS_SIGNED { Self::select(self.is_negative(), self.negative(), self) } else { self } }
        sign(self) -> Self {{
            let positive = Self::select(self.truthy(), Self::one(), Self::zero());
            if I::IS_SIGNED { Self::select(self.is_negative(), Self::one().negative(), positive) } else { positive }
        }}
        floor(self) -> Self { self }
        ceil(self) -> Self { self }
        round(self) -> Self { self }
        trunc(self) -> Self { self }
        floor_divide(self, other: Self) -> Self { Self::select(other.truthy(), self.divided(other).0, Self::zero()) }
        remainder(self, other: Self) -> Self {{
            let (quotient, divisor) = self.divided(other);
            self - quotient * divisor
        }}
        isnan(self) -> Condition { Condition::constant(false) }
        isinf(self) -> Condition { Condition::constant(false) }
        signbit(self) -> Condition { self.is_negative() }
    }
}

// A negative count is a large one as an unsigned integer. Shifts by the width and more give 0 or, if they preserve the sign, the sign.
impl<I: Whole> Int for Integer<I> {
    methods! {
        bitwise_xor(self, other: Self) -> Self { Self::bitwise(Op::Xor, self, other) }
        left_shift(self, other: Self) -> Self { Self::wrapping(Op::ShiftLeftBy, &[self.id, other.extended().id]) }
        right_shift(self, other: Self) -> Self {{
            let shift = if I::IS_SIGNED { Op::ShiftRightSignedBy } else { Op::ShiftRightBy };
            Self::of(shift, &[self.extended().id, other.extended().id])
        }}
    }
}
