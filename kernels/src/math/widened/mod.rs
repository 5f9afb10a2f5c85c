//! Functions of `f32`, computed in `f64`.
//!
//! The functions in these files take doubles that were converted from singles and return doubles that will be rounded
//! to singles. Their relative error is below 2⁻³⁰. Rounding the result once therefore returns the nearest single,
//! except in a few cases where it returns an adjacent one: the error is below 0.52 ULP. Intermediate results neither
//! overflow nor become denormal, because the exponent range of a double is wide enough.

mod arc;
mod area;
mod exp;
mod gamma;
mod hyperbolic;
mod log;
mod power;
mod trig;

use super::binary::Binary32;

/// Functions of singles from those of doubles: `file: name name …;`.
macro_rules! rounded {
    ($($file:ident $arguments:tt: $($name:ident)*;)*) => {$($(rounded!(@ $file $name $arguments);)*)*};
    (@ $file:ident $name:ident ($($x:ident),*)) => {
        #[inline(always)]
        pub fn $name<F: Binary32>($($x: F),*) -> F {
            F::narrow($file::$name($($x.wide()),*))
        }
    };
}
rounded! {
    hyperbolic(x): sinh cosh;
    log(x, y): logaddexp;
    area(x): asinh acosh atanh;
    trig(x): sin cos tan;
    arc(x): asin acos atan;
    arc(y, x): atan2;
    gamma(x): lgamma;
    power(x): cbrt;
    power(x, y): pow hypot;
}
