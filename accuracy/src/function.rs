//! The functions that are tried.

use minitensor_kernels::{Field, Float, Map, map};

/// A loop over so many elements.
pub type Loop = unsafe fn(usize, *const f32, *mut f32);

/// A function of singles.
pub struct Single {
    pub name: &'static str,
    /// What it may be wrong by, in ULP.
    pub bound: f64,
    pub ours: Loop,
    pub platform: Loop,
    pub reference: fn(f64) -> f64,
}

pub fn run(function: Loop, x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "elements of x and y");
    // SAFETY: both have as many elements.
    unsafe { function(x.len(), x.as_ptr(), y.as_mut_ptr()) }
}

/// A loop of a function. Not by way of a closure: a large one wouldn't be inlined.
macro_rules! unary {
    ($function:expr) => {
        |n, x, y| {
            struct Unary;
            impl Map for Unary {
                type In = (f32,);
                type Out = (f32,);
                #[inline(always)]
                fn eval(&self, (x,): (f32,)) -> (f32,) {
                    ($function(x),)
                }
            }
            // SAFETY: the caller's promise.
            unsafe { map(&Unary, n, &[x.cast()], &[y.cast()]) }
        }
    };
}

macro_rules! singles {
    ($($name:ident $bound:literal $ours:path, $platform:expr, $reference:expr;)*) => {
        pub const SINGLES: &[Single] = &[$(Single {
            name: stringify!($name),
            bound: $bound,
            ours: unary!($ours),
            platform: unary!($platform),
            reference: $reference,
        }),*];
    };
}
singles! {
    exp 0.52 Field::exp, f32::exp, f64::exp;
    exp2 0.52 Float::exp2, f32::exp2, f64::exp2;
    expm1 0.52 Field::expm1, f32::exp_m1, f64::exp_m1;
    sigmoid 0.52 Field::sigmoid, |x: f32| 1.0 / (1.0 + (-x).exp()), |x| 1.0 / (1.0 + (-x).exp());
    softplus 0.52 Float::softplus, |x: f32| x.max(0.0) + (-x.abs()).exp().ln_1p(), |x| x.max(0.0) + (-x.abs()).exp().ln_1p();
    log_sigmoid 0.52 Float::log_sigmoid, |x: f32| x.min(0.0) - (-x.abs()).exp().ln_1p(), |x| -((-x).max(0.0) + (-x.abs()).exp().ln_1p());
    log 0.52 Field::log, f32::ln, f64::ln;
    log2 0.52 Field::log2, f32::log2, f64::log2;
    log10 0.52 Field::log10, f32::log10, f64::log10;
    log1p 0.52 Field::log1p, f32::ln_1p, f64::ln_1p;
    sinh 0.52 Field::sinh, f32::sinh, f64::sinh;
    cosh 0.52 Field::cosh, f32::cosh, f64::cosh;
    tanh 0.52 Field::tanh, f32::tanh, f64::tanh;
    asinh 0.52 Field::asinh, libm::asinhf, libm::asinh;
    acosh 0.52 Field::acosh, libm::acoshf, |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) };
    atanh 0.52 Field::atanh, libm::atanhf, libm::atanh;
    sin 0.52 Field::sin, f32::sin, f64::sin;
    cos 0.52 Field::cos, f32::cos, f64::cos;
    tan 0.52 Field::tan, f32::tan, f64::tan;
    asin 0.52 Field::asin, f32::asin, f64::asin;
    acos 0.52 Field::acos, f32::acos, f64::acos;
    atan 0.52 Field::atan, f32::atan, f64::atan;
    erf 0.52 Float::erf, libm::erff, libm::erf;
    erfc 0.52 Float::erfc, libm::erfcf, libm::erfc;
    lgamma 1.0 Float::lgamma, libm::lgammaf, libm::lgamma;
    cbrt 0.52 Float::cbrt, f32::cbrt, f64::cbrt;
}
