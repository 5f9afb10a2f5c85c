//! The functions of `f64`.

/// What the platform computes.
macro_rules! platform {
    ($($name:ident($($x:ident),*) = $path:path;)*) => {$(
        #[inline(always)]
        pub fn $name($($x: f64),*) -> f64 {
            $path($($x),*)
        }
    )*};
}
platform! {
    exp(x) = f64::exp;
    exp2(x) = f64::exp2;
    expm1(x) = f64::exp_m1;
    log(x) = f64::ln;
    log1p(x) = f64::ln_1p;
    log2(x) = f64::log2;
    log10(x) = f64::log10;
    sin(x) = f64::sin;
    cos(x) = f64::cos;
    tan(x) = f64::tan;
    asin(x) = f64::asin;
    acos(x) = f64::acos;
    atan(x) = f64::atan;
    sinh(x) = f64::sinh;
    cosh(x) = f64::cosh;
    tanh(x) = f64::tanh;
    asinh(x) = libm::asinh;
    acosh(x) = libm::acosh;
    atanh(x) = libm::atanh;
    erf(x) = libm::erf;
    erfc(x) = libm::erfc;
    lgamma(x) = libm::lgamma;
    cbrt(x) = f64::cbrt;
    pow(x, y) = f64::powf;
    atan2(y, x) = f64::atan2;
    hypot(x, y) = f64::hypot;
}

/// `1 / (1 + e⁻ˣ)`: e^−|x| never overflows, and each tail keeps all its digits.
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    let e = exp(-x.abs());
    let numerator = if x < 0.0 { e } else { 1.0 };
    numerator / (1.0 + e)
}

#[inline(always)]
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + log1p(exp(-x.abs()))
}

#[inline(always)]
pub fn log_sigmoid(x: f64) -> f64 {
    x.min(0.0) - log1p(exp(-x.abs()))
}

#[inline(always)]
pub fn logaddexp(x: f64, y: f64) -> f64 {
    // Two equal infinities have no difference.
    let gap = if x == y { 0.0 } else { (x - y).abs() };
    x.max(y) + log1p(exp(-gap))
}
