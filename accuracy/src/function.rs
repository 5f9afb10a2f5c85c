//! The functions to test.

use astro_float::BigFloat;
use minitensor_kernels::{Field, Float, Map, Num, map};

use crate::wide::Wide;

/// Φ(x), accurate enough as a reference for `f32`.
fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// The density of the standard normal distribution, accurate enough as a reference for `f32`.
fn normal_pdf(x: f64) -> f64 {
    (-0.5 * x * x).exp() * 0.398_942_280_401_432_7
}

/// A loop over a number of elements.
pub type Loop<T> = unsafe fn(usize, *const T, *mut T);

/// A function of `f32`.
pub struct Single {
    pub name: &'static str,
    /// The maximum error in ULP.
    pub bound: f64,
    pub ours: Loop<f32>,
    pub platform: Loop<f32>,
    pub reference: fn(f64) -> f64,
}

/// A function of `f64`.
pub struct Double {
    pub name: &'static str,
    pub bound: f64,
    pub ours: Loop<f64>,
    pub platform: Loop<f64>,
    pub reference: fn(&mut Wide, &BigFloat) -> BigFloat,
    /// The ranges of arguments.
    pub ranges: &'static [(f64, f64)],
}

/// A loop over a number of pairs of elements.
pub type Loop2<T> = unsafe fn(usize, *const T, *const T, *mut T);

/// A function of two `f64`.
pub struct Double2 {
    pub name: &'static str,
    pub bound: f64,
    pub ours: Loop2<f64>,
    pub platform: Loop2<f64>,
    pub reference: fn(&mut Wide, &BigFloat, &BigFloat) -> BigFloat,
    /// The ranges of the first and the second argument.
    pub ranges: &'static [[(f64, f64); 2]],
}

pub fn run2<T>(function: Loop2<T>, x: &[T], y: &[T], z: &mut [T]) {
    assert!(x.len() == z.len() && y.len() == z.len(), "elements of x, y and z");
    // SAFETY: all slices have the same length.
    unsafe { function(z.len(), x.as_ptr(), y.as_ptr(), z.as_mut_ptr()) }
}

pub fn run<T>(function: Loop<T>, x: &[T], y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "elements of x and y");
    // SAFETY: both slices have the same length.
    unsafe { function(x.len(), x.as_ptr(), y.as_mut_ptr()) }
}

/// Defines a loop of a function. It does not use a closure, because a large closure would not be inlined.
macro_rules! unary {
    ($t:ident $function:expr) => {
        |n, x, y| {
            struct Unary;
            impl Map for Unary {
                type In = ($t,);
                type Out = ($t,);
                #[inline(always)]
                fn eval(&self, (x,): ($t,)) -> ($t,) {
                    ($function(x),)
                }
            }
            // SAFETY: the caller guarantees valid pointers.
            unsafe { map(&Unary, n, &[x.cast()], &[y.cast()]) }
        }
    };
}

macro_rules! singles {
    ($($name:ident $bound:literal $ours:expr, $platform:expr, $reference:expr;)*) => {
        pub const SINGLES: &[Single] = &[$(Single {
            name: stringify!($name),
            bound: $bound,
            ours: unary!(f32 $ours),
            platform: unary!(f32 $platform),
            reference: $reference,
        }),*];
    };
}
singles! {
    exp 0.9 Field::exp, f32::exp, f64::exp;
    exp2 0.9 Float::exp2, f32::exp2, f64::exp2;
    expm1 0.9 Field::expm1, f32::exp_m1, f64::exp_m1;
    sigmoid 0.9 Field::sigmoid, |x: f32| 1.0 / (1.0 + (-x).exp()), |x| 1.0 / (1.0 + (-x).exp());
    silu 0.95 Float::silu, |x: f32| x / (1.0 + (-x).exp()), |x| if x < -700.0 { -0.0 } else { x / (1.0 + (-x).exp()) };
    softplus 0.95 Float::softplus, |x: f32| x.max(0.0) + (-x.abs()).exp().ln_1p(), |x| x.max(0.0) + (-x.abs()).exp().ln_1p();
    log_sigmoid 0.95 Float::log_sigmoid, |x: f32| x.min(0.0) - (-x.abs()).exp().ln_1p(), |x| -((-x).max(0.0) + (-x.abs()).exp().ln_1p());
    log 0.9 Field::log, f32::ln, f64::ln;
    log2 0.9 Field::log2, f32::log2, f64::log2;
    log10 0.9 Field::log10, f32::log10, f64::log10;
    log1p 0.9 Field::log1p, f32::ln_1p, f64::ln_1p;
    sinh 0.52 Field::sinh, f32::sinh, f64::sinh;
    cosh 0.52 Field::cosh, f32::cosh, f64::cosh;
    tanh 0.9 Field::tanh, f32::tanh, f64::tanh;
    asinh 0.52 Field::asinh, libm::asinhf, libm::asinh;
    acosh 0.52 Field::acosh, libm::acoshf, |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) };
    atanh 0.52 Field::atanh, libm::atanhf, libm::atanh;
    sin 0.52 Field::sin, f32::sin, f64::sin;
    cos 0.52 Field::cos, f32::cos, f64::cos;
    tan 0.52 Field::tan, f32::tan, f64::tan;
    asin 0.52 Field::asin, f32::asin, f64::asin;
    acos 0.52 Field::acos, f32::acos, f64::acos;
    atan 0.52 Field::atan, f32::atan, f64::atan;
    erf 0.9 Float::erf, libm::erff, libm::erf;
    erfc 0.95 Float::erfc, libm::erfcf, libm::erfc;
    normal_cdf 0.95 Float::normal_cdf, |x: f32| 0.5 * libm::erfcf(-x * std::f32::consts::FRAC_1_SQRT_2), normal_cdf;
    normal_pdf 0.9 Float::normal_pdf, |x: f32| (-0.5 * x * x).exp() * 0.398_942_3, normal_pdf;
    gelu 20.0 |x: f32| x * x.normal_cdf(), |x: f32| 0.5 * x * libm::erfcf(-x * std::f32::consts::FRAC_1_SQRT_2), |x| x * normal_cdf(x);
    lgamma 0.52 Float::lgamma, libm::lgammaf, libm::lgamma;
    cbrt 0.52 Float::cbrt, f32::cbrt, f64::cbrt;
}

macro_rules! doubles {
    ($($name:ident $bound:literal $ours:path, $platform:expr, $reference:expr, [$($range:expr),*];)*) => {
        pub const DOUBLES: &[Double] = &[$(Double {
            name: stringify!($name),
            bound: $bound,
            ours: unary!(f64 $ours),
            platform: unary!(f64 $platform),
            reference: $reference,
            ranges: &[$($range),*],
        }),*];
    };
}
doubles! {
    exp 1.0 Field::exp, f64::exp, |w, x| w.exp(x), [(-750.0, 710.0), (-1.0, 1.0)];
    exp2 1.0 Float::exp2, f64::exp2, |w, x| { let t = w.number(2.0); t.pow(x, 256, astro_float::RoundingMode::None, w.consts()) }, [(-1080.0, 1024.5), (-1.0, 1.0)];
    expm1 1.0 Field::expm1, f64::exp_m1, |w, x| w.expm1(x), [(-45.0, 710.0), (-2.0, 2.0)];
    sigmoid 1.0 Field::sigmoid, |x: f64| 1.0 / (1.0 + (-x).exp()), |w, x| { let e = w.exp(&x.neg()); w.over(&w.number(1.0), &w.plus(&e, 1.0)) }, [(-750.0, 50.0), (-2.0, 2.0)];
    silu 1.0 Float::silu, |x: f64| x / (1.0 + (-x).exp()), |w, x| { let e = w.exp(&x.neg()); w.over(x, &w.plus(&e, 1.0)) }, [(-760.0, 50.0), (-2.0, 2.0)];
    softplus 1.0 Float::softplus, |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p(), |w, x| { let e = w.exp(x); w.log1p(&e) }, [(-740.0, 700.0), (-2.0, 2.0)];
    log 1.0 Field::log, f64::ln, |w, x| w.ln(x), [(5e-324, f64::MAX), (0.5, 2.0)];
    log2 1.0 Field::log2, f64::log2, |w, x| w.log2(x), [(5e-324, f64::MAX), (0.5, 2.0)];
    log10 1.0 Field::log10, f64::log10, |w, x| w.log10(x), [(5e-324, f64::MAX), (0.5, 2.0)];
    log1p 1.0 Field::log1p, f64::ln_1p, |w, x| w.log1p(x), [(-0.9999999999999999, f64::MAX), (-0.5, 1.0)];
    sinh 1.0 Field::sinh, f64::sinh, |w, x| w.sinh(x), [(-710.5, 710.5), (-2.0, 2.0)];
    cosh 1.0 Field::cosh, f64::cosh, |w, x| w.cosh(x), [(-710.5, 710.5), (-2.0, 2.0)];
    tanh 1.0 Field::tanh, f64::tanh, |w, x| w.tanh(x), [(-30.0, 30.0), (-1.0, 1.0)];
    asinh 1.0 Field::asinh, libm::asinh, |w, x| w.asinh(x), [(-f64::MAX, f64::MAX), (-2.0, 2.0)];
    acosh 1.0 Field::acosh, libm::acosh, |w, x| w.acosh(x), [(1.0, f64::MAX), (1.0, 2.0)];
    atanh 1.0 Field::atanh, libm::atanh, |w, x| w.atanh(x), [(-0.9999999999999999, 0.9999999999999999)];
    sin 1.0 Field::sin, f64::sin, |w, x| w.sin(x), [(-f64::MAX, f64::MAX), (-1e8, 1e8), (-4.0, 4.0)];
    cos 1.0 Field::cos, f64::cos, |w, x| w.cos(x), [(-f64::MAX, f64::MAX), (-1e8, 1e8), (-4.0, 4.0)];
    tan 1.0 Field::tan, f64::tan, |w, x| w.tan(x), [(-f64::MAX, f64::MAX), (-1e8, 1e8), (-4.0, 4.0), (0.7, 0.88)];
    asin 1.0 Field::asin, f64::asin, |w, x| w.asin(x), [(-1.0, 1.0)];
    acos 1.0 Field::acos, f64::acos, |w, x| w.acos(x), [(-1.0, 1.0)];
    atan 1.0 Field::atan, f64::atan, |w, x| w.atan(x), [(-f64::MAX, f64::MAX), (-4.0, 4.0)];
    erf 1.0 Float::erf, libm::erf, |w, x| w.erf(x), [(-6.5, 6.5), (-1.1, 1.1)];
    erfc 1.0 Float::erfc, libm::erfc, |w, x| w.erfc(x), [(-6.0, 27.3), (-2.0, 2.0)];
    normal_cdf 1.0 Float::normal_cdf, normal_cdf, |w, x| w.normal_cdf(x), [(-38.6, 9.0), (-37.5, -33.0), (-2.0, 2.0)];
    normal_pdf 1.0 Float::normal_pdf, |x: f64| (-0.5 * x * x).exp() * 0.398_942_280_401_432_7, |w, x| w.normal_pdf(x), [(-38.5, 38.5), (-2.0, 2.0)];
    lgamma 1.0 Float::lgamma, libm::lgamma, |w, x| w.lgamma(x), [(5e-324, 2.5e305), (0.5, 3.0), (3.0, 20.0)];
    cbrt 1.0 Float::cbrt, f64::cbrt, |_, x| x.cbrt(256, astro_float::RoundingMode::None), [(-f64::MAX, f64::MAX), (1.0, 8.0)];
}

macro_rules! binary {
    ($function:expr) => {
        |n, x, y, z| {
            struct Binary;
            impl Map for Binary {
                type In = (f64, f64);
                type Out = (f64,);
                #[inline(always)]
                fn eval(&self, (x, y): (f64, f64)) -> (f64,) {
                    ($function(x, y),)
                }
            }
            // SAFETY: the caller guarantees valid pointers.
            unsafe { map(&Binary, n, &[x.cast(), y.cast()], &[z.cast()]) }
        }
    };
}

macro_rules! doubles_of_two {
    ($($name:ident $bound:literal $ours:path, $platform:expr, $reference:expr, [$($range:expr),*];)*) => {
        pub const DOUBLES_OF_TWO: &[Double2] = &[$(Double2 {
            name: stringify!($name),
            bound: $bound,
            ours: binary!($ours),
            platform: binary!($platform),
            reference: $reference,
            ranges: &[$($range),*],
        }),*];
    };
}
doubles_of_two! {
    pow 1.0 Num::pow, f64::powf, |w, x, y| w.pow(x, y), [
        [(0.0, 16.0), (-8.0, 8.0)],
        [(5e-324, f64::MAX), (-1.06, 1.06)],
        [(0.5, 2.0), (-1080.0, 1080.0)],
        [(1.35, 1.41), (1500.0, 2050.0)],
        [(0.999999, 1.000001), (-7.4e8, 7.4e8)],
        [(1.0, 10.0), (-330.0, -300.0)]
    ];
    atan2 1.0 Float::atan2, f64::atan2, |w, y, x| w.atan2(y, x), [[(-f64::MAX, f64::MAX), (-f64::MAX, f64::MAX)], [(-8.0, 8.0), (-8.0, 8.0)], [(0.0, 1e-300), (0.0, 1e-300)], [(0.0, 1e-300), (0.0, 1e10)]];
    hypot 1.0 Float::hypot, f64::hypot, |w, x, y| w.hypot(x, y), [[(-1.2e308, 1.2e308), (-1.2e308, 1.2e308)], [(-8.0, 8.0), (-8.0, 8.0)], [(0.0, 1e-300), (0.0, 1e-300)]];
}
