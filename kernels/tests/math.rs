//! The elementary functions: their ends, their errors, and the same bits at every level. `cargo xtask ulp` tries every
//! single; here it is a sample.

mod lcg;

use lcg::Lcg;
use minitensor_kernels::simd::{Level, set_level};
use minitensor_kernels::{Field, Float, Machine, Map, map};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const PI: f64 = std::f64::consts::PI;

/// Every function of one argument: its name, what std or libm has for doubles, and its values at −∞, −0, 0, ∞ and NaN.
macro_rules! functions {
    ($callback:ident) => {
        $callback! {
            Field exp f64::exp [0.0, 1.0, 1.0, INF];
            Float exp2 f64::exp2 [0.0, 1.0, 1.0, INF];
            Field expm1 f64::exp_m1 [-1.0, -0.0, 0.0, INF];
            Field sigmoid (|x: f64| 1.0 / (1.0 + (-x).exp())) [0.0, 0.5, 0.5, 1.0];
            Field log f64::ln [NAN, -INF, -INF, INF];
            Field log2 f64::log2 [NAN, -INF, -INF, INF];
            Field log10 f64::log10 [NAN, -INF, -INF, INF];
            Field log1p f64::ln_1p [NAN, -0.0, 0.0, INF];
            Field sinh f64::sinh [-INF, -0.0, 0.0, INF];
            Field cosh f64::cosh [INF, 1.0, 1.0, INF];
            Field tanh f64::tanh [-1.0, -0.0, 0.0, 1.0];
            Field asinh libm::asinh [-INF, -0.0, 0.0, INF];
            Field acosh (|x: f64| if x < 1.0 { NAN } else { libm::acosh(x) }) [NAN, NAN, NAN, INF];
            Field atanh libm::atanh [NAN, -0.0, 0.0, NAN];
            Field sin f64::sin [NAN, -0.0, 0.0, NAN];
            Field cos f64::cos [NAN, 1.0, 1.0, NAN];
            Field tan f64::tan [NAN, -0.0, 0.0, NAN];
            Field asin f64::asin [NAN, -0.0, 0.0, NAN];
            Field acos f64::acos [NAN, PI / 2.0, PI / 2.0, NAN];
            Field atan f64::atan [-PI / 2.0, -0.0, 0.0, PI / 2.0];
            Float erf libm::erf [-1.0, -0.0, 0.0, 1.0];
            Float erfc libm::erfc [2.0, 1.0, 1.0, 0.0];
            Float normal_cdf normal_cdf [0.0, 0.5, 0.5, 1.0];
            Float lgamma libm::lgamma [INF, INF, INF, INF];
            Float cbrt f64::cbrt [-INF, -0.0, 0.0, INF];
        }
    };
}

/// Φ(x), with what the rounded argument lacks.
fn normal_cdf(x: f64) -> f64 {
    let scale = std::f64::consts::FRAC_1_SQRT_2;
    let z = -x * scale;
    let lacking = (-x).mul_add(scale, -z) + x * 4.833646656726457e-17;
    let change = if z.abs() < 30.0 { (-z * z).exp() * lacking } else { 0.0 };
    0.5 * libm::erfc(z) - change / std::f64::consts::PI.sqrt()
}

/// Equal with the sign of a zero, NaN being equal to NaN.
fn same(a: f64, b: f64) -> bool {
    a.is_nan() && b.is_nan() || a == b && a.is_sign_negative() == b.is_sign_negative()
}

#[test]
fn the_ends_are_those_of_c99() {
    macro_rules! ends {
        ($($trait:ident $name:ident $reference:tt $(:: $of:ident)? [$($end:expr),*];)*) => {$(
            for (x, want) in [-INF, -0.0, 0.0, INF].into_iter().zip([$($end),*]).chain([(NAN, NAN)]) {
                let (double, single) = ($trait::$name(x), $trait::$name(x as f32));
                assert!(same(double, want), "{}({x}) is {double}, not {want}", stringify!($name));
                assert!(same(single as f64, want as f32 as f64), "{}({x}f32) is {single}, not {want}", stringify!($name));
            }
        )*};
    }
    functions!(ends);
}

/// In units in the last place of a double or single with so many bits and such a least exponent.
fn error(got: f64, want: f64, bits: i32, least: i32) -> f64 {
    if same(got, want) {
        return 0.0;
    }
    let exponent = ((want.abs().to_bits() >> 52) as i32 - 1023).max(least);
    // In two steps, as the unit of a small number is no normal one.
    (got - want).abs() * 2f64.powi(-exponent / 2) * 2f64.powi(bits - 1 - exponent + exponent / 2)
}

#[test]
fn functions_of_singles_are_off_by_less_than_a_unit() {
    macro_rules! singles {
        ($($trait:ident $name:ident $reference:tt $(:: $of:ident)? [$($end:expr),*];)*) => {$(
            for bits in (0..=u32::MAX).step_by(40_009) {
                let x = f32::from_bits(bits);
                let (got, want) = ($trait::$name(x), $reference$(::$of)?(x as f64));
                // An overflow is one in both.
                let off = if got.is_infinite() && want as f32 == got { 0.0 } else { error(got as f64, want, 24, -126) };
                assert!(off < 0.9 || want == 0.0, "{}({x:e}f32) is {got:e}, off by {off} ULP", stringify!($name));
            }
        )*};
    }
    functions!(singles);
}

#[test]
fn functions_of_doubles_are_as_the_platform_has_them_or_nearly() {
    let mut random = Lcg(1);
    let x: Vec<f64> = (0..20_000).map(|i| random.unit() * [1.0, 5.0, 40.0, 700.0][i % 4]).collect();
    macro_rules! doubles {
        ($($trait:ident $name:ident $reference:tt $(:: $of:ident)? [$($end:expr),*];)*) => {$(
            for &x in &x {
                let (got, want) = ($trait::$name(x), $reference$(::$of)?(x));
                // Theirs may be off, too: by one unit, the naive sigmoid by three.
                let off = error(got, want, 53, -1022);
                assert!(off <= 3.0, "{}({x:e}) is {got:e}, not {want:e}: {off} ULP", stringify!($name));
            }
        )*};
    }
    functions!(doubles);
}

#[test]
fn multiples_of_a_right_angle_are_left_with_all_their_digits() {
    // The single that is nearest to a multiple of π/2, and others far out; from mpmath.
    for (x, sin, cos) in SINES {
        assert_eq!((Field::sin(x), Field::cos(x)), (sin, cos), "sin and cos of {x:e}");
    }
}

#[test]
fn powers_are_those_of_c99() {
    for (x, y, want) in [
        (-8.0f32, 3.0, -512.0),
        (-8.0, -1.0, -0.125),
        (-8.0, 2.0, 64.0),
        (-8.0, 1.0 / 3.0, f32::NAN),
        (0.0, 0.0, 1.0),
        (f32::NAN, 0.0, 1.0),
        (1.0, f32::NAN, 1.0),
        (-1.0, f32::NAN, f32::NAN),
        (-1.0, f32::INFINITY, 1.0),
        (-1.0, f32::NEG_INFINITY, 1.0),
        (-0.0, 3.0, -0.0),
        (-0.0, -3.0, f32::NEG_INFINITY),
        (-0.0, 2.0, 0.0),
        (-0.0, -0.5, f32::INFINITY),
        (f32::NEG_INFINITY, 3.0, f32::NEG_INFINITY),
        (f32::NEG_INFINITY, 0.5, f32::INFINITY),
        (f32::NEG_INFINITY, -3.0, -0.0),
        (0.5, f32::INFINITY, 0.0),
        (2.0, f32::NEG_INFINITY, 0.0),
        (0.0, f32::NEG_INFINITY, f32::INFINITY),
        (-2.0, 1e30, f32::INFINITY),
        (10.0, -45.0, 1e-45),
    ] {
        let got = Field::pow(x, y);
        assert!(same(got as f64, want as f64), "{x} to the {y} is {got}, not {want}");
    }
    let mut random = Lcg(2);
    for _ in 0..50_000 {
        let (x, y) = ((random.unit() as f32).abs() * 20.0, random.unit() as f32 * 30.0);
        let (got, want) = (Field::pow(x, y), (x as f64).powf(y as f64));
        let off = if got.is_infinite() && want as f32 == got { 0.0 } else { error(got as f64, want, 24, -126) };
        assert!(off < 0.52, "{x} to the {y} is {got}, off by {off} ULP");
    }
}

#[test]
fn angles_are_those_of_c99() {
    let all = [-f32::INFINITY, -2.5, -1e-45, -0.0, 0.0, 1e-45, 1.0, 3e38, f32::INFINITY, f32::NAN];
    for y in all {
        for x in all {
            let (got, want) = (Float::atan2(y, x), (y as f64).atan2(x as f64));
            let off = error(got as f64, want, 24, -126);
            assert!(off < 0.52, "the angle of ({x}, {y}) is {got}, not {want}");
            let (got, want) = (Float::hypot(x, y), (x as f64).hypot(y as f64));
            let off = if got.is_infinite() && want as f32 == got { 0.0 } else { error(got as f64, want, 24, -126) };
            assert!(off < 0.52, "the length of ({x}, {y}) is {got}, not {want}");
        }
    }
}

/// A map of one function over an array, at a level.
fn at<T: Machine, M: Map<In = (T,), Out = (T,)>>(level: Level, m: &M, x: &[T]) -> Vec<T> {
    set_level(level);
    let mut y = vec![T::default(); x.len()];
    // SAFETY: two arrays of the same length.
    unsafe { map(m, x.len(), &[x.as_ptr().cast()], &[y.as_mut_ptr().cast()]) };
    y
}

#[test]
fn every_level_computes_the_same_bits() {
    let mut random = Lcg(3);
    let singles: Vec<f32> = (0..2000).map(|_| f32::from_bits(random.next() as u32)).collect();
    let doubles: Vec<f64> = (0..2000).map(|i| random.unit() * [1.0, 30.0, 1e9, 1e300][i % 4]).collect();
    macro_rules! levels {
        ($($trait:ident $name:ident $reference:tt $(:: $of:ident)? [$($end:expr),*];)*) => {$(
            levels!(@ $trait $name f32 singles);
            levels!(@ $trait $name f64 doubles);
        )*};
        (@ $trait:ident $name:ident $t:ident $x:ident) => {{
            struct Function;
            impl Map for Function {
                type In = ($t,);
                type Out = ($t,);
                #[inline(always)]
                fn eval(&self, (x,): ($t,)) -> ($t,) {
                    ($trait::$name(x),)
                }
            }
            let want = at(Level::Baseline, &Function, &$x);
            for level in [Level::Avx2, Level::Avx512] {
                for ((&x, got), want) in $x.iter().zip(at(level, &Function, &$x)).zip(&want) {
                    let equal = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                    assert!(equal, "{}({x:e}) at {level:?} is {got:e}, not {want:e}", stringify!($name));
                }
            }
        }};
    }
    functions!(levels);
}

/// Singles near multiples of π/2, with sine and cosine, from mpmath.
const SINES: [(f32, f32, f32); 11] = [
    (1.881713e9, 1.0, 1.0793499e-5),
    (8.826735e14, 1.0, 1.5753423e-6),
    (1.765347e15, 3.1506845e-6, -1.0),
    (1.3906635e18, -1.0, -4.117048e-6),
    (1.1061501e23, 1.0, -4.3673226e-6),
    (2.2123002e23, -8.734645e-6, -1.0),
    (2.4378103e27, 1.68401e-5, -1.0),
    (1.3315942e31, -3.5606997e-6, 1.0),
    (2.6631884e31, -7.1213994e-6, 1.0),
    (2.4760495e36, 1.0, -1.0076337e-5),
    (3.3946886e38, 1.0, -3.7569363e-5),
];
