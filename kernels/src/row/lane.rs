//! [`Lane`]: one element of a row in one pass. It tracks the pass in which its value becomes known.

use std::ops::{Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, Sub, SubAssign};

use super::body::{ComputedFloat, KEPT, MOST_REDUCTIONS};
use super::scope::Scope;
use super::sweep::LANES;
use super::{RealRow, Reduction, Row, RowFunction, Together};
use crate::number::scalar::{Const, Element, Field, Float, Mask, Num, Real, sigmoid_and_slope};
use crate::number::{BitFunction, Dual};

/// The depth of [`Origin::UNKNOWN`], which exceeds that of every body.
pub(super) const UNKNOWN: usize = usize::MAX / 2;

/// The dependencies of a number. All of it is constant at compile time and leaves no code in the loops.
#[derive(Clone, Copy)]
struct Origin<'s, T> {
    /// The number of passes after which it is known.
    depth: usize,
    /// True if it differs from element to element.
    varies: bool,
    /// True if it is known to be 0, as is the tangent of a number that doesn't depend on the variable.
    nil: bool,
    /// The evaluation that computes it; `None` for constants.
    scope: Option<&'s Scope<'s, T>>,
}

impl<'s, T> Origin<'s, T> {
    const CONSTANT: Self = Origin { depth: 0, varies: false, nil: false, scope: None };
    /// The origin of a value that no pass computes: the sum of a constant over a row, because a constant has no row.
    const UNKNOWN: Self = Origin { depth: UNKNOWN, ..Self::CONSTANT };

    /// The same origin, but for a number that may have any value.
    #[inline(always)]
    fn any(self) -> Self {
        Origin { nil: false, ..self }
    }

    #[inline(always)]
    fn join(self, other: Self) -> Self {
        Origin {
            depth: if self.depth > other.depth { self.depth } else { other.depth },
            varies: self.varies | other.varies,
            nil: false,
            scope: if self.scope.is_some() { self.scope } else { other.scope },
        }
    }
}

/// One element of a row in pass `P`.
#[derive(Clone, Copy)]
pub struct Lane<'s, T, const P: usize> {
    value: T,
    origin: Origin<'s, T>,
}

/// The result of comparing [`Lane`]s.
#[derive(Clone, Copy)]
pub struct LaneMask<'s, T, const P: usize> {
    truth: bool,
    origin: Origin<'s, T>,
}

impl<'s, T: ComputedFloat, const P: usize> Lane<'s, T, P> {
    #[inline(always)]
    pub(super) fn outside(value: T) -> Self {
        Lane { value, origin: Origin::CONSTANT }
    }

    #[inline(always)]
    pub(super) fn new(value: T, varies: bool, scope: &'s Scope<'s, T>) -> Self {
        Lane { value, origin: Origin { depth: 0, varies, nil: false, scope: Some(scope) } }
    }

    #[inline(always)]
    pub(super) fn value(self) -> T {
        self.value
    }

    /// The value; `None` if it is known to be 0.
    #[inline(always)]
    pub(super) fn known(self) -> Option<T> {
        if self.origin.nil { None } else { Some(self.value) }
    }

    #[inline(always)]
    fn zero_of(self, other: Self) -> Self {
        Lane { value: T::ZERO, origin: Origin { nil: true, ..self.origin.join(other.origin) } }
    }

    #[inline(always)]
    pub(super) fn varies(self) -> bool {
        self.origin.varies
    }

    /// True if the row of a constant would be needed to compute it.
    #[inline(always)]
    pub(super) fn is_unknown(self) -> bool {
        self.origin.depth >= UNKNOWN
    }

    #[inline(always)]
    fn unknown() -> Self {
        Lane { value: T::ZERO, origin: Origin::UNKNOWN }
    }

    /// A property of the position in the row at which this number is computed.
    #[inline(always)]
    fn of_place(self, varies: bool, property: impl FnOnce(&Scope<'s, T>) -> usize) -> Self {
        let Some(scope) = self.origin.scope else { return Lane::unknown() };
        let origin = Origin { depth: 0, varies, nil: false, scope: Some(scope) };
        Lane { value: T::constant(Const::Float(property(scope) as f64)), origin }
    }

    #[inline(always)]
    fn of(self, value: T) -> Self {
        Lane { value, ..self }
    }

    /// The result of a reduction of this number, if earlier passes computed it.
    #[inline(always)]
    fn reduced(self, reduction: Reduction, tangent: Option<T>) -> (usize, Self) {
        let Some(scope) = self.origin.scope else { return (usize::MAX, Lane::unknown()) };
        let k = scope.count_reductions.get();
        scope.count_reductions.set(k + 1);
        let runs = reduction.is_running();
        let origin = Origin { depth: self.origin.depth + 1, varies: runs, nil: false, scope: Some(scope) };
        if k >= MOST_REDUCTIONS {
            return (k, Lane { value: T::ZERO, origin });
        }
        scope.argument[k].set(self.value);
        scope.tangent[k].set(tangent);
        scope.kind[k].set((reduction, self.origin.depth));
        let value = match self.origin.depth < P {
            // SAFETY: a scope has a place for each reduction, `count` apart.
            true if runs => unsafe { *scope.running.add(k * scope.count) },
            true => scope.known[k],
            false => T::ZERO,
        };
        (k, Lane { value, origin })
    }
}

impl<T: ComputedFloat, const P: usize> Row for Lane<'_, T, P> {}

impl<'s, T: ComputedFloat, const P: usize> RealRow for Lane<'s, T, P> {
    type Index = i64;

    #[inline(always)]
    fn reduce(self, reduction: Reduction) -> Self {
        self.reduced(reduction, None).1
    }
    #[inline(always)]
    fn of_row<const N: usize>(_: RowFunction, _: [Self; N]) -> Self {
        const { panic!("a precompiled body cannot shift, sort or scan its row; remove the clause `precompiled`") }
    }
    #[inline(always)]
    fn scan<X: Together<Self>>(_: X, _: impl Fn(X, X) -> X) -> X {
        const { panic!("a precompiled body cannot shift, sort or scan its row; remove the clause `precompiled`") }
    }
    #[inline(always)]
    fn to_index(self) -> i64 {
        // An error for each body that calls it.
        const { assert!(size_of::<T>() == 0, "a precompiled body cannot return positions; remove the clause `precompiled`") };
        0
    }
    #[inline(always)]
    fn count(self) -> Self {
        self.of_place(false, |scope| scope.count)
    }
    #[inline(always)]
    fn position(self) -> Self {
        self.of_place(true, |scope| scope.position)
    }
    #[inline(always)]
    fn stands_at(self, index: i64) -> LaneMask<'s, T, P> {
        let Some(scope) = self.origin.scope else { return LaneMask { truth: false, origin: Origin::UNKNOWN } };
        let origin = Origin { depth: 0, varies: true, nil: false, scope: Some(scope) };
        LaneMask { truth: scope.position as i64 == index, origin }
    }
}

impl<T: ComputedFloat, const P: usize> Row for Dual<Lane<'_, T, P>> {}

/// Dual numbers over a row. The derivative of a reduction is 1 if it is the variable and 0 otherwise; the tangent of
/// its argument is stored in the scope.
impl<'s, T: ComputedFloat, const P: usize> RealRow for Dual<Lane<'s, T, P>> {
    type Index = i64;

    #[inline(always)]
    fn reduce(self, reduction: Reduction) -> Self {
        let (k, value) = self.value.reduced(reduction, self.tangent.known());
        if self.value.origin.scope.is_none_or(|scope| scope.direction != k) {
            return Dual::constant_of(value);
        }
        Dual { value, tangent: value.of(T::one()) }
    }
    #[inline(always)]
    fn of_row<const N: usize>(_: RowFunction, _: [Self; N]) -> Self {
        const { panic!("a precompiled body cannot shift, sort or scan its row; remove the clause `precompiled`") }
    }
    #[inline(always)]
    fn scan<X: Together<Self>>(_: X, _: impl Fn(X, X) -> X) -> X {
        const { panic!("a precompiled body cannot shift, sort or scan its row; remove the clause `precompiled`") }
    }
    #[inline(always)]
    fn to_index(self) -> i64 {
        // An error for each body that calls it.
        const { assert!(size_of::<T>() == 0, "a precompiled body cannot return positions; remove the clause `precompiled`") };
        0
    }
    #[inline(always)]
    fn count(self) -> Self {
        Dual::constant_of(self.value.count())
    }
    #[inline(always)]
    fn position(self) -> Self {
        Dual::constant_of(self.value.position())
    }
    #[inline(always)]
    fn stands_at(self, index: i64) -> LaneMask<'s, T, P> {
        self.value.stands_at(index)
    }
}

impl<T: ComputedFloat, const P: usize> Mask for LaneMask<'_, T, P> {
    #[inline(always)]
    fn constant(truth: bool) -> Self {
        LaneMask { truth, origin: Origin::CONSTANT }
    }
}

macro_rules! mask_operators {
    ($($trait:ident $method:ident $op:tt;)*) => {$(
        impl<T: ComputedFloat, const P: usize> $trait for LaneMask<'_, T, P> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                LaneMask { truth: self.truth $op other.truth, origin: self.origin.join(other.origin) }
            }
        }
    )*};
}
mask_operators! { BitAnd bitand &; BitOr bitor |; }

impl<T: ComputedFloat, const P: usize> Not for LaneMask<'_, T, P> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        LaneMask { truth: !self.truth, ..self }
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $op:tt |$x:ident, $y:ident| $short:expr;)*) => {$(
        impl<T: ComputedFloat, const P: usize> $trait for Lane<'_, T, P> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let ($x, $y) = (self, other);
                if let Some(result) = $short {
                    return result;
                }
                Lane { value: self.value $op other.value, origin: self.origin.join(other.origin) }
            }
        }
        impl<T: ComputedFloat, const P: usize> $assign for Lane<'_, T, P> {
            #[inline(always)]
            fn $assign_method(&mut self, other: Self) { *self = *self $op other; }
        }
    )*};
}
operators! {
    Add add AddAssign add_assign + |x, y| if x.origin.nil { Some(y) } else if y.origin.nil { Some(x) } else { None };
    Sub sub SubAssign sub_assign - |x, y| if y.origin.nil { Some(x) } else if x.origin.nil { Some(-y) } else { None };
    Mul mul MulAssign mul_assign * |_x, _y| None;
    Div div DivAssign div_assign / |_x, _y| None;
}

impl<T: ComputedFloat, const P: usize> Rem for Lane<'_, T, P> {
    type Output = Self;
    #[inline(always)]
    fn rem(self, other: Self) -> Self {
        self.fmod(other)
    }
}

impl<T: ComputedFloat, const P: usize> Neg for Lane<'_, T, P> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.of(-self.value)
    }
}

/// Functions that cost no more than reading a kept result.
macro_rules! cheap {
    ($($name:ident($self:ident $(, $x:ident)*);)*) => {$(
        #[inline(always)]
        fn $name($self $(, $x: Self)*) -> Self {
            Lane { value: $self.value.$name($($x.value),*), origin: $self.origin.any()$(.join($x.origin))* }
        }
    )*};
}

/// Functions that the earliest possible pass computes and keeps for later passes.
macro_rules! expensive {
    ($($name:ident($self:ident $(, $x:ident)*);)*) => {$(
        #[inline(always)]
        fn $name($self $(, $x: Self)*) -> Self {
            let origin = $self.origin.any()$(.join($x.origin))*;
            let scope = match origin.scope {
                Some(scope) if origin.varies => scope,
                _ => return Lane { value: $self.value.$name($($x.value),*), origin },
            };
            let slot = scope.expensive.get();
            scope.expensive.set(slot + 1);
            if slot < KEPT {
                scope.keeper[slot].set(origin.depth);
            }
            if slot < KEPT && origin.depth < P {
                // SAFETY: a scope has KEPT places, `count` apart.
                return Lane { value: unsafe { *scope.kept.add(slot * scope.count) }, origin };
            }
            let value = $self.value.$name($($x.value),*);
            if slot < KEPT && origin.depth == P {
                // SAFETY: a scope has KEPT places for new values, `LANES` apart.
                unsafe { *scope.keeps.add(slot * LANES) = value };
            }
            Lane { value, origin }
        }
    )*};
}

macro_rules! tests {
    ($($name:ident($self:ident $(, $x:ident)*);)*) => {$(
        #[inline(always)]
        fn $name($self $(, $x: Self)*) -> Self::Mask {
            LaneMask { truth: $self.value.$name($($x.value),*), origin: $self.origin$(.join($x.origin))* }
        }
    )*};
}

impl<'s, T: ComputedFloat, const P: usize> Element for Lane<'s, T, P> {
    type Mask = LaneMask<'s, T, P>;
    #[inline(always)]
    fn constant(value: Const) -> Self {
        let nil = matches!(value, Const::Int(0));
        Lane { value: T::constant(value), origin: Origin { nil, ..Origin::CONSTANT } }
    }
    tests! { equal(self, other); truthy(self); }
    #[inline(always)]
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self {
        if a.origin.nil && b.origin.nil {
            return a.zero_of(b);
        }
        Lane { value: T::select(mask.truth, a.value, b.value), origin: mask.origin.join(a.origin).join(b.origin) }
    }
}

impl<T: ComputedFloat, const P: usize> Num for Lane<'_, T, P> {
    cheap! { square(self); }
    expensive! { pow(self, exponent); exponent_slope(self); }
    #[inline(always)]
    fn negative(self) -> Self {
        self.of(self.value.negative())
    }
    #[inline(always)]
    fn conj(self) -> Self {
        self
    }
    #[inline(always)]
    fn chain(self, tangent: Self) -> Self {
        if tangent.origin.nil {
            return self.zero_of(tangent);
        }
        Lane { value: self.value.chain(tangent.value), origin: self.origin.join(tangent.origin) }
    }
    #[inline(always)]
    fn times(self, tangent: Self) -> Self {
        if tangent.origin.nil { self.zero_of(tangent) } else { self * tangent }
    }
    #[inline(always)]
    fn powi(self, exponent: i64) -> Self {
        Lane { value: self.value.powi(exponent), origin: self.origin.any() }
    }
}

impl<T: ComputedFloat, const P: usize> Real for Lane<'_, T, P> {
    tests! { less(self, other); less_equal(self, other); isnan(self); isinf(self); signbit(self); }
    cheap! {
        maximum(self, other); minimum(self, other); abs(self); sign(self); floor(self); ceil(self); round(self);
        trunc(self); floor_divide(self, other); remainder(self, other);
    }
}

impl<T: ComputedFloat, const P: usize> Field for Lane<'_, T, P> {
    cheap! { recip(self); sqrt(self); }
    expensive! {
        exp(self); expm1(self); log(self); log1p(self); log2(self); log10(self); sin(self); cos(self); tan(self);
        asin(self); acos(self); atan(self); sinh(self); cosh(self); tanh(self); asinh(self); acosh(self); atanh(self);
        sigmoid(self);
    }
    #[inline(always)]
    fn sigmoid_and_slope(self) -> (Self, Self) {
        sigmoid_and_slope(self)
    }
}

impl<T: ComputedFloat, const P: usize> Float for Lane<'_, T, P> {
    tests! { isfinite(self); bits_equal(self, other); bits_less(self, other); }
    #[inline(always)]
    fn of_bits(bits: u64) -> Self {
        Lane::outside(T::of_bits(bits))
    }
    #[inline(always)]
    fn bits(function: BitFunction, a: Self, b: Self) -> Self {
        Lane { value: T::bits(function, a.value, b.value), origin: a.origin.any().join(b.origin) }
    }
    cheap! { rsqrt(self); copysign(self, sign); fmod(self, other); mul_add(self, b, c); as_float16(self); as_bfloat16(self); }
    expensive! {
        cbrt(self); exp2(self); silu(self); softplus(self); log_sigmoid(self); erf(self); erfc(self); normal_cdf(self);
        normal_pdf(self); lgamma(self); digamma(self);
        atan2(self, other); hypot(self, other); logaddexp(self, other);
    }
    #[inline(always)]
    fn nan() -> Self {
        Lane::outside(T::nan())
    }
    #[inline(always)]
    fn infinity() -> Self {
        Lane::outside(T::infinity())
    }
    #[inline(always)]
    fn epsilon() -> Self {
        Lane::outside(T::epsilon())
    }
    #[inline(always)]
    fn polygamma(self, order: u32) -> Self {
        Lane { value: self.value.polygamma(order), origin: self.origin.any() }
    }
}
