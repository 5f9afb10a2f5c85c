//! [`Mixed`]: operators between complex and real numbers.

use super::Complex;
use crate::number::scalar::{Field, Float};

/// `+ − × ÷` of two numbers of a body, of which each may be complex. A body with complex numbers is lowered to these methods, because
/// Rust does not allow operators with a dtype variable on the left and another type on the right.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{Rhs}` cannot be combined by an operator",
    label = "not numbers of one dtype variable",
    note = "both numbers are `T`, or `Complex<T>`, or one of each"
)]
pub trait Mixed<Rhs> {
    /// Complex if one of the numbers is.
    type Output;
    /// `self + other`
    fn plus(self, other: Rhs) -> Self::Output;
    /// `self - other`
    fn minus(self, other: Rhs) -> Self::Output;
    /// `self * other`
    fn multiplied(self, other: Rhs) -> Self::Output;
    /// `self / other`
    fn divided(self, other: Rhs) -> Self::Output;
}

macro_rules! mixed {
    ($left:ty, $right:ty => $out:ty; |$a:ident, $b:ident| $plus:expr, $minus:expr, $times:expr, $over:expr) => {
        #[diagnostic::do_not_recommend]
        impl<T: Float> Mixed<$right> for $left {
            type Output = $out;
            #[inline(always)]
            fn plus(self, other: $right) -> $out {
                let ($a, $b) = (self, other);
                $plus
            }
            #[inline(always)]
            fn minus(self, other: $right) -> $out {
                let ($a, $b) = (self, other);
                $minus
            }
            #[inline(always)]
            fn multiplied(self, other: $right) -> $out {
                let ($a, $b) = (self, other);
                $times
            }
            #[inline(always)]
            fn divided(self, other: $right) -> $out {
                let ($a, $b) = (self, other);
                $over
            }
        }
    };
}
mixed!(T, T => T; |a, b| a + b, a - b, a * b, a.divide(b));
mixed!(Complex<T>, Complex<T> => Complex<T>; |a, b| a + b, a - b, a * b, a.divide(b));
mixed!(Complex<T>, T => Complex<T>; |a, b| a + b, a - b, a * b, a / b);
mixed!(T, Complex<T> => Complex<T>; |a, b|
    Complex::new(a + b.re, b.im),
    Complex::new(a - b.re, -b.im),
    b.scaled(a),
    Complex::from(a).divide(b)
);
