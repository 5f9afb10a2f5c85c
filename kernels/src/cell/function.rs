//! The functions that a tape records, each as a type: a rule is compiled for a function only if a body calls it.

use crate::number::scalar::{Field, Float, Num, Real};

/// What is known of a function for all numbers.
pub(super) trait Known: 'static {
    /// Whether the result is the conjugate of the argument, which is no holomorphic function.
    const CONJUGATES: bool = false;
    /// Whether it takes much longer than an arithmetic operation.
    const IS_DEAR: bool;
}

/// A function of `N` numbers of type `S`. The `parameter` is an exponent or an order; most functions have none.
pub(super) trait Function<S, const N: usize>: Known {
    fn at(x: [S; N], parameter: i64) -> S;
}

macro_rules! functions {
    ($($bound:ident, $is_dear:literal { $($name:ident($($x:ident),+ $(; $n:ident)?) = $y:expr;)* })*) => {$($(
        pub(super) struct $name;
        impl Known for $name {
            const IS_DEAR: bool = $is_dear;
        }
        impl<S: $bound> Function<S, { [$(stringify!($x)),+].len() }> for $name {
            #[inline(always)]
            fn at([$($x),+]: [S; { [$(stringify!($x)),+].len() }], _parameter: i64) -> S {
                $(let $n = _parameter;)?
                $y
            }
        }
    )*)*};
}

functions! {
    Num, false {
        Add(x, y) = x + y; Subtract(x, y) = x - y; Multiply(x, y) = x * y; Negative(x) = x.negative();
        Square(x) = x.square(); Chain(x, y) = x.chain(y); Powi(x; n) = x.powi(n);
        Detach(x) = x.detach();
    }
    Num, true { Pow(x, y) = x.pow(y); ExponentSlope(x) = x.exponent_slope(); }
    Real, false {
        Maximum(x, y) = x.maximum(y); Minimum(x, y) = x.minimum(y); Abs(x) = x.abs(); Sign(x) = x.sign();
        Floor(x) = x.floor(); Ceil(x) = x.ceil(); Round(x) = x.round(); Trunc(x) = x.trunc();
        FloorDivide(x, y) = x.floor_divide(y); Remainder(x, y) = x.remainder(y);
    }
    Field, false { Quotient(x, y) = x / y; Divide(x, y) = x.divide(y); Recip(x) = x.recip(); Sqrt(x) = x.sqrt(); }
    Field, true {
        Exp(x) = x.exp(); Expm1(x) = x.expm1(); Log(x) = x.log(); Log1p(x) = x.log1p(); Log2(x) = x.log2(); Log10(x) = x.log10();
        Sin(x) = x.sin(); Cos(x) = x.cos(); Tan(x) = x.tan(); Asin(x) = x.asin(); Acos(x) = x.acos(); Atan(x) = x.atan();
        Sinh(x) = x.sinh(); Cosh(x) = x.cosh(); Tanh(x) = x.tanh(); Asinh(x) = x.asinh(); Acosh(x) = x.acosh();
        Atanh(x) = x.atanh(); Sigmoid(x) = x.sigmoid();
    }
    Float, true {
        Rsqrt(x) = x.rsqrt(); Cbrt(x) = x.cbrt(); Exp2(x) = x.exp2(); Silu(x) = x.silu(); Softplus(x) = x.softplus();
        LogSigmoid(x) = x.log_sigmoid(); Erf(x) = x.erf(); Erfc(x) = x.erfc(); NormalCdf(x) = x.normal_cdf();
        NormalPdf(x) = x.normal_pdf(); Lgamma(x) = x.lgamma(); Digamma(x) = x.digamma();
        Polygamma(x; n) = x.polygamma(n as u32); Atan2(x, y) = x.atan2(y); Hypot(x, y) = x.hypot(y);
        Logaddexp(x, y) = x.logaddexp(y); Copysign(x, y) = x.copysign(y); Fmod(x, y) = x.fmod(y);
        MulAdd(x, y, z) = x.mul_add(y, z); Float16(x) = x.as_float16(); Bfloat16(x) = x.as_bfloat16();
    }
}

pub(super) struct Conj;
impl Known for Conj {
    const CONJUGATES: bool = true;
    const IS_DEAR: bool = false;
}
impl<S: Num> Function<S, 1> for Conj {
    #[inline(always)]
    fn at([x]: [S; 1], _: i64) -> S {
        x.conj()
    }
}
