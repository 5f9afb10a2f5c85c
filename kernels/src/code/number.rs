//! Numbers that record each operation in a machine form.

use std::marker::PhantomData;
use std::ops::{
    Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, Shl, Shr, Sub, SubAssign,
};

use super::form::{Id, Op, Rounding, Width, push, refuse};
use crate::math::binary::{Binary, Binary32, Binary64, Word};
use crate::number::scalar::Mask;

/// A float of a machine form. `N` is its type in memory.
#[derive(Debug)]
pub struct Number<N>(pub Id, PhantomData<N>);

impl<N: Format> Number<N> {
    /// The number that a node computes.
    pub fn of_node(id: Id) -> Number<N> {
        Number(id, PhantomData)
    }

    /// The result of a function that has no form.
    pub fn refused(self) -> Number<N> {
        refuse();
        self
    }

    /// The same, for a function with an order.
    pub fn refused_order(self, _order: u32) -> Number<N> {
        self.refused()
    }
}

/// The bits of a float of a machine form.
#[derive(Debug)]
pub struct Bits<N>(Id, PhantomData<N>);

/// A truth value of a machine form.
#[derive(Clone, Copy, Debug)]
pub struct Condition(pub Id);

/// `f32` or `f64`.
pub trait Format: Copy + 'static {
    /// Its bits.
    type Bits: Copy + Into<u64>;
    /// Its width.
    const WIDTH: Width;
    /// The bits of a number.
    fn bits(self) -> u64;
}

impl Format for f32 {
    type Bits = u32;
    const WIDTH: Width = Width::Single;
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

impl Format for f64 {
    type Bits = u64;
    const WIDTH: Width = Width::Double;
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// A constant of a form.
fn constant<N: Format>(bits: u64) -> Id {
    push(Op::Constant(bits), N::WIDTH, &[])
}

macro_rules! copied {
    ($($name:ident)*) => {$(
        impl<N> Clone for $name<N> {
            fn clone(&self) -> Self { *self }
        }
        impl<N> Copy for $name<N> {}
        impl<N: Format> $name<N> {
            fn made(op: Op, operands: &[Id]) -> Self { Self(push(op, N::WIDTH, operands), PhantomData) }
        }
    )*};
}
copied! { Number Bits }

macro_rules! operators {
    ($($trait:ident $method:ident $name:ident<N> $op:ident;)*) => {$(
        impl<N: Format> $trait for $name<N> {
            type Output = Self;
            fn $method(self, other: Self) -> Self { Self::made(Op::$op, &[self.0, other.0]) }
        }
    )*};
    ($($trait:ident $method:ident by native;)*) => {$(
        impl<N: Format> $trait<N> for Number<N> {
            type Output = Self;
            fn $method(self, other: N) -> Self { self.$method(Self::of(other)) }
        }
    )*};
    ($($trait:ident $method:ident by $op:ident;)*) => {$(
        impl<N: Format> $trait<u32> for Bits<N> {
            type Output = Self;
            fn $method(self, count: u32) -> Self { Self::made(Op::$op(count), &[self.0]) }
        }
    )*};
}
operators! {
    Add add Number<N> Add; Sub sub Number<N> Subtract; Mul mul Number<N> Multiply; Div div Number<N> Divide;
    Rem rem Number<N> Fmod;
    Add add Bits<N> AddInt; Sub sub Bits<N> SubtractInt; Mul mul Bits<N> MultiplyInt;
    BitAnd bitand Bits<N> And; BitOr bitor Bits<N> Or; BitXor bitxor Bits<N> Xor;
}
operators! { Add add by native; Sub sub by native; Mul mul by native; Div div by native; }
operators! { Shl shl by ShiftLeft; Shr shr by ShiftRight; }

macro_rules! assignments {
    ($($trait:ident $method:ident $op:tt;)*) => {$(
        impl<N: Format> $trait for Number<N> {
            fn $method(&mut self, other: Self) { *self = *self $op other; }
        }
    )*};
}
assignments! { AddAssign add_assign +; SubAssign sub_assign -; MulAssign mul_assign *; DivAssign div_assign /; }

/// The sign.
fn sign<N: Format>() -> Bits<N> {
    Bits(constant::<N>(N::WIDTH.sign()), PhantomData)
}

impl<N: Format> Neg for Number<N> {
    type Output = Self;
    fn neg(self) -> Self {
        Self::from_bits(self.to_bits() ^ sign())
    }
}

macro_rules! methods {
    ($($name:ident($x:tt $(, $y:ident: $t:ty)*) -> $out:ty = $value:expr;)*) => {$(
        fn $name($x $(, $y: $t)*) -> $out { $value }
    )*};
}

impl<N: Format> Binary for Number<N> {
    type Native = N;
    type Bits = Bits<N>;
    type Mask = Condition;
    fn of(value: N) -> Self {
        Self(constant::<N>(value.bits()), PhantomData)
    }
    fn from_bits(bits: Bits<N>) -> Self {
        Self(bits.0, PhantomData)
    }
    methods! {
        to_bits(self) -> Bits<N> = Bits(self.0, PhantomData);
        mul_add(self, a: Self, b: Self) -> Self = Self::made(Op::MulAdd { minus: false, less: false }, &[self.0, a.0, b.0]);
        sqrt(self) -> Self = Self::made(Op::Sqrt, &[self.0]);
        abs(self) -> Self = Self::made(Op::AndNot, &[sign::<N>().0, self.0]);
        copysign(self, other: Self) -> Self = Self::from_bits(self.abs().to_bits() | (other.to_bits() & sign()));
        floor(self) -> Self = Self::made(Op::Round(Rounding::Down), &[self.0]);
        ceil(self) -> Self = Self::made(Op::Round(Rounding::Up), &[self.0]);
        trunc(self) -> Self = Self::made(Op::Round(Rounding::Truncate), &[self.0]);
        round(self) -> Self = Self::made(Op::Round(Rounding::Nearest), &[self.0]);
        less(self, other: Self) -> Condition = Condition(Self::made(Op::Less, &[self.0, other.0]).0);
        less_equal(self, other: Self) -> Condition = Condition(Self::made(Op::LessEqual, &[self.0, other.0]).0);
        equal(self, other: Self) -> Condition = Condition(Self::made(Op::Equal, &[self.0, other.0]).0);
    }
    fn select(condition: Condition, a: Self, b: Self) -> Self {
        Self::made(Op::Select, &[condition.0, a.0, b.0])
    }
}

impl<N: Format> Word for Bits<N> {
    type Native = N::Bits;
    type Mask = Condition;
    fn of(bits: N::Bits) -> Self {
        Self(constant::<N>(bits.into()), PhantomData)
    }
    methods! {
        wrapping_add(self, other: Self) -> Self = self + other;
        wrapping_sub(self, other: Self) -> Self = self - other;
        shifted_left(self, count: Self) -> Self = Self::made(Op::ShiftLeftBy, &[self.0, count.0]);
        shifted_right(self, count: Self) -> Self = Self::made(Op::ShiftRightBy, &[self.0, count.0]);
        less(self, other: Self) -> Condition = Condition(Self::made(Op::LessInt, &[self.0, other.0]).0);
        equal(self, other: Self) -> Condition = Condition(Self::made(Op::EqualInt, &[self.0, other.0]).0);
        is_negative(self) -> Condition = Condition(Self::made(Op::IsNegative, &[self.0]).0);
    }
    fn select(condition: Condition, a: Self, b: Self) -> Self {
        Self::made(Op::Select, &[condition.0, a.0, b.0])
    }
}

impl Binary32 for Number<f32> {
    type Wide = Number<f64>;
    fn wide(self) -> Number<f64> {
        Number::made(Op::Widen, &[self.0])
    }
    fn narrow(wide: Number<f64>) -> Self {
        Number::made(Op::Narrow, &[wide.0])
    }
    fn of_signed(bits: Bits<f32>) -> Self {
        Number::made(Op::OfSigned, &[bits.0])
    }
    fn nearest_float16(self) -> Self {
        Number::made(Op::NearestFloat16, &[self.0])
    }
}

impl Binary64 for Number<f64> {}

/// The logic of conditions does not depend on their width, which is that of the first operand.
macro_rules! logic {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl $trait for Condition {
            type Output = Self;
            fn $method(self, other: Self) -> Self { Condition(push(Op::$op, Width::Single, &[self.0, other.0])) }
        }
    )*};
}
logic! { BitAnd bitand Both; BitOr bitor Either; }

impl Not for Condition {
    type Output = Self;
    fn not(self) -> Self {
        Condition(push(Op::Not, Width::Single, &[self.0]))
    }
}

impl Mask for Condition {
    fn constant(value: bool) -> Self {
        Condition(push(Op::Truth(value), Width::Single, &[]))
    }
}
