//! Operators with references, sums of iterators, and methods by the names that Rust's own numbers have. They make the body of a cell plain
//! Rust.

use std::iter::{Product, Sum};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use num_complex::Complex;

use super::scalar::{Field, Float, Num, Real};

/// A trait that all types with these bounds implement, with other names of their methods.
macro_rules! alias {
    (
        $(#[$doc:meta])*
        $name:ident: [$($bound:tt)*]
        $($rust:ident($($x:ident),*) -> $result:ty = $of:ident::$ours:ident;)*
    ) => {
        $(#[$doc])*
        pub trait $name: $($bound)* {
            $(
                #[doc = concat!("As `", stringify!($ours), "`.")]
                #[inline(always)]
                fn $rust(self, $($x: Self),*) -> $result {
                    $of::$ours(self, $($x),*)
                }
            )*
        }
        impl<Own: $($bound)*> $name for Own {}
    };
}

alias! {
    /// A number with `x + &y`, `x += &y`, `.sum()` and `.product()`.
    NumOperand: [Num
        + for<'a> Add<&'a Self, Output = Self> + for<'a> Sub<&'a Self, Output = Self> + for<'a> Mul<&'a Self, Output = Self>
        + for<'a> AddAssign<&'a Self> + for<'a> SubAssign<&'a Self> + for<'a> MulAssign<&'a Self>
        + Sum + for<'a> Sum<&'a Self> + Product + for<'a> Product<&'a Self>]
}
alias! {
    /// A real number with the methods of Rust's own.
    RealOperand: [Real + NumOperand]
    max(other) -> Self = Real::maximum;
    min(other) -> Self = Real::minimum;
    clamp(least, most) -> Self = Real::clip;
    is_nan() -> Self::Mask = Real::isnan;
    is_infinite() -> Self::Mask = Real::isinf;
    is_sign_negative() -> Self::Mask = Real::signbit;
}
alias! {
    /// A number with `x / &y` and `x /= &y`.
    FieldOperand: [Field + NumOperand + for<'a> Div<&'a Self, Output = Self> + for<'a> DivAssign<&'a Self>]
    ln() -> Self = Field::log;
    ln_1p() -> Self = Field::log1p;
    exp_m1() -> Self = Field::expm1;
    powf(exponent) -> Self = Num::pow;
}
alias! {
    /// A floating-point number with all of these.
    FloatOperand: [Float + RealOperand + FieldOperand]
    is_finite() -> Self::Mask = Float::isfinite;
}
/// A reference to a number `T` with `&x + y` and `&x + &y`.
pub trait NumReference<T>:
    Sized
    + Add<T, Output = T>
    + Sub<T, Output = T>
    + Mul<T, Output = T>
    + for<'a> Add<&'a T, Output = T>
    + for<'a> Sub<&'a T, Output = T>
    + for<'a> Mul<&'a T, Output = T>
{
}

/// A reference to a number `T` with `&x / y`, `&x / &y` and `-&x`.
pub trait FieldReference<T>:
    NumReference<T> + Div<T, Output = T> + for<'a> Div<&'a T, Output = T> + Neg<Output = T>
{
}

/// The traits of references are implemented type by type. If all types with these operators had them, then rustc would search the operators
/// of references to arrays of arrays without end, where it does not know the number yet.
macro_rules! references {
    ($($name:ident: $($t:ty),*;)*) => {$($(
        impl $name<$t> for &$t {}
    )*)*};
}
references! {
    NumReference: i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>;
    FieldReference: f32, f64, Complex<f32>, Complex<f64>;
}
