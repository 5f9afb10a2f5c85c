//! The elementary functions: special values, errors, and the same bits at every level. This is a sample; `cargo xtask
//! ulp` tests every single.

mod lcg;

use lcg::Lcg;
use minitensor_kernels::simd::{Level, set_level};
use minitensor_kernels::{Field, Float, Machine, Map, Num, map};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const PI: f64 = std::f64::consts::PI;

/// Every function of one argument: its name, the function of std or libm for doubles, and its values at −∞, −0, 0, ∞
/// and NaN.
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
            Float normal_pdf normal_pdf [0.0, 0.3989422804014327, 0.3989422804014327, 0.0];
            Float lgamma libm::lgamma [INF, INF, INF, INF];
            Float cbrt f64::cbrt [-INF, -0.0, 0.0, INF];
        }
    };
}

/// Φ(x), corrected for the rounding error of the argument.
fn normal_cdf(x: f64) -> f64 {
    let scale = std::f64::consts::FRAC_1_SQRT_2;
    let z = -x * scale;
    let lacking = (-x).mul_add(scale, -z) + x * 4.833646656726457e-17;
    let change = if z.abs() < 30.0 { (-z * z).exp() * lacking } else { 0.0 };
    0.5 * libm::erfc(z) - change / std::f64::consts::PI.sqrt()
}

/// The derivative of Φ, corrected for the rounding error of the square.
fn normal_pdf(x: f64) -> f64 {
    let square = x * x;
    let lacking = if square.is_finite() { x.mul_add(x, -square) } else { 0.0 };
    (-0.5 * square).exp() * (1.0 - 0.5 * lacking) * (0.5 / PI).sqrt()
}

/// Equality that distinguishes the signs of zeros and treats NaN as equal to NaN.
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

/// The error in units in the last place, for a format with `bits` digits and the minimum exponent `least`.
fn error(got: f64, want: f64, bits: i32, least: i32) -> f64 {
    if same(got, want) {
        return 0.0;
    }
    let exponent = ((want.abs().to_bits() >> 52) as i32 - 1023).max(least);
    // In two steps, because the unit of a small number may be denormal.
    (got - want).abs() * 2f64.powi(-exponent / 2) * 2f64.powi(bits - 1 - exponent + exponent / 2)
}

#[test]
fn functions_of_singles_are_off_by_less_than_a_unit() {
    macro_rules! singles {
        ($($trait:ident $name:ident $reference:tt $(:: $of:ident)? [$($end:expr),*];)*) => {$(
            for bits in (0..=u32::MAX).step_by(40_009) {
                let x = f32::from_bits(bits);
                let (got, want) = ($trait::$name(x), $reference$(::$of)?(x as f64));
                // An overflow must occur in both.
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
                // The reference may be off, too: by one unit, the naive sigmoid by three.
                let off = error(got, want, 53, -1022);
                // Between negative integers ln Γ has zeros, near which both have few correct digits.
                let zero = stringify!($name) == "lgamma" && x < 0.0 && (got - want).abs() < 4.0 * f64::EPSILON;
                assert!(off <= 3.0 || zero, "{}({x:e}) is {got:e}, not {want:e}: {off} ULP", stringify!($name));
            }
        )*};
    }
    functions!(doubles);
}

#[test]
fn multiples_of_a_right_angle_are_left_with_all_their_digits() {
    // The single that is nearest to a multiple of π/2, and large ones; from mpmath.
    for (x, sin, cos) in SINES {
        assert_eq!((Field::sin(x), Field::cos(x)), (sin, cos), "sin and cos of {x:e}");
    }
    for (x, sin, cos) in SINES_OF_DOUBLES {
        for (got, want) in [(Field::sin(x), sin), (Field::cos(x), cos)] {
            let off = error(got, want, 53, -1022);
            assert!(off <= 1.0, "of {x:e}: {got:e}, not {want:e}: {off} ULP");
        }
    }
}

#[test]
fn angles_of_all_sizes_are_turned_as_the_platform_does_it() {
    let mut random = Lcg(4);
    for _ in 0..100_000 {
        let x = f64::from_bits(random.next());
        let pairs = [(Field::sin(x), x.sin()), (Field::cos(x), x.cos()), (Field::tan(x), x.tan())];
        for (got, want) in pairs {
            let off = error(got, want, 53, -1022);
            assert!(off <= 2.0, "of {x:e}: {got:e}, not {want:e}: {off} ULP");
        }
        assert!(same(Field::sin(-x), -Field::sin(x)) && same(Field::cos(-x), Field::cos(x)), "sin and cos of −{x:e}");
    }
}

#[test]
fn the_error_function_keeps_its_digits_to_the_end() {
    for (x, erf, erfc, normal_cdf) in ERRORS {
        let pairs = [(Float::erf(x), erf), (Float::erfc(x), erfc), (Float::normal_cdf(x), normal_cdf)];
        for (got, want) in pairs {
            let off = error(got, want, 53, -1022);
            assert!(off <= 1.0, "at {x}: {got:e}, not {want:e}: {off} ULP");
        }
        assert_eq!(Float::erf(-x), -Float::erf(x), "erf is odd at {x}");
    }
}

#[test]
fn the_gamma_function_has_poles_and_zeros() {
    for (x, want) in [(1.0, 0.0), (2.0, 0.0), (-1.0, INF), (-7.0, INF), (-1e300, INF), (2.6e305, INF), (f64::MAX, INF)]
    {
        assert!(same(Float::lgamma(x), want), "ln Γ({x}) is {:e}, not {want}", Float::lgamma(x));
    }
    for (x, want) in GAMMAS {
        let off = error(Float::lgamma(x), want, 53, -1022);
        assert!(off <= 1.0, "ln Γ({x:e}) is {:e}, not {want:e}: {off} ULP", Float::lgamma(x));
    }
}

#[test]
fn powers_are_those_of_c99() {
    for (x, y, want) in [
        (-8.0, 3.0, -512.0),
        (-8.0, -1.0, -0.125),
        (-8.0, 2.0, 64.0),
        (-8.0, 1.0 / 3.0, NAN),
        (0.0, 0.0, 1.0),
        (NAN, 0.0, 1.0),
        (INF, -0.0, 1.0),
        (1.0, NAN, 1.0),
        (1.0, -INF, 1.0),
        (-1.0, NAN, NAN),
        (NAN, 1.0, NAN),
        (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        (-0.0, 3.0, -0.0),
        (-0.0, -3.0, -INF),
        (-0.0, 2.0, 0.0),
        (-0.0, -0.5, INF),
        (-0.0, INF, 0.0),
        (-INF, 3.0, -INF),
        (-INF, 0.5, INF),
        (-INF, -3.0, -0.0),
        (-INF, -INF, 0.0),
        (0.5, INF, 0.0),
        (-0.5, -INF, INF),
        (2.0, -INF, 0.0),
        (INF, 1e-30, INF),
        (INF, -1e-30, 0.0),
        (0.0, -INF, INF),
    ] {
        let (double, single) = (Num::pow(x, y), Num::pow(x as f32, y as f32));
        assert!(same(double, want), "{x} to the {y} is {double}, not {want}");
        assert!(same(single as f64, want), "{x} to the {y} is {single}, not {want}, of f32");
    }
    for (x, y, want) in [(-2.0, 1e30, f32::INFINITY), (10.0, -45.0, 1e-45)] {
        assert_eq!(Num::pow(x, y), want, "{x} to the {y}");
    }
    let mut random = Lcg(2);
    for _ in 0..50_000 {
        let (x, y) = ((random.unit() as f32).abs() * 20.0, random.unit() as f32 * 30.0);
        let (got, want) = (Num::pow(x, y), (x as f64).powf(y as f64));
        let off = if got.is_infinite() && want as f32 == got { 0.0 } else { error(got as f64, want, 24, -126) };
        assert!(off < 0.52, "{x} to the {y} is {got}, off by {off} ULP");
    }
}

#[test]
fn powers_of_doubles_are_as_the_platform_has_them_or_nearly() {
    // The second and third are the largest odd number and the largest one with a half.
    let ends =
        [f64::MAX, 9007199254740991.0, 4503599627370495.5, 3.0, 1.0 + f64::EPSILON, 1.0, 0.5, 1e-308, 5e-324, 0.0];
    let ends: Vec<f64> = ends.into_iter().flat_map(|x| [x, -x]).chain([INF, -INF, NAN]).collect();
    let pairs = ends.iter().flat_map(|&x| ends.iter().map(move |&y| (x, y)));
    let mut random = Lcg(5);
    let random = (0..60_000).map(|i| match i % 3 {
        0 => (random.unit() * 30.0, (random.unit() * 40.0).round()),
        1 => (f64::from_bits(random.next() >> 1), random.unit() * 1.1),
        // Near 1, and results down to denormals and up to infinity.
        _ => (1.0 + random.unit() * 1e-3, random.unit() * 7.5e5),
    });
    for (x, y) in pairs.chain(random) {
        let (got, want) = (Num::pow(x, y), x.powf(y));
        let off = error(got, want, 53, -1022);
        assert!(off <= 1.0, "{x:e} to the {y:e} is {got:e}, not {want:e}: {off} ULP");
    }
}

#[test]
fn angles_and_lengths_are_those_of_c99() {
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
    let ends = [INF, f64::MAX, 1e300, 1e160, 2.5, 1.0, 1e-160, 1e-300, 1e-310, 5e-324, 0.0];
    let ends: Vec<f64> = ends.into_iter().flat_map(|x| [x, -x]).chain([NAN]).collect();
    let pairs = ends.iter().flat_map(|&y| ends.iter().map(move |&x| (y, x)));
    let mut random = Lcg(6);
    let random = (0..60_000).map(|i| match i % 3 {
        0 => (f64::from_bits(random.next()), f64::from_bits(random.next())),
        1 => (random.unit(), random.unit()),
        _ => (random.unit() * 1e-308, random.unit() * 1e-308),
    });
    for (y, x) in pairs.chain(random) {
        let (got, want) = (Float::atan2(y, x), y.atan2(x));
        let off = error(got, want, 53, -1022);
        assert!(off <= 1.0, "the angle of ({x:e}, {y:e}) is {got:e}, not {want:e}: {off} ULP");
        let (got, want) = (Float::hypot(x, y), x.hypot(y));
        let off = error(got, want, 53, -1022);
        assert!(off <= 1.0, "the length of ({x:e}, {y:e}) is {got:e}, not {want:e}: {off} ULP");
        assert!(same(got, Float::hypot(y, -x)), "the length of ({y:e}, −{x:e})");
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
            for &level in &Level::ALL[1..] {
                for ((&x, got), want) in $x.iter().zip(at(level, &Function, &$x)).zip(&want) {
                    let equal = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                    assert!(equal, "{}({x:e}) at {level:?} is {got:e}, not {want:e}", stringify!($name));
                }
            }
        }};
    }
    functions!(levels);
}

#[test]
fn every_level_computes_the_same_bits_of_two_doubles() {
    let mut random = Lcg(7);
    let mut next =
        || (0..4000).map(|i| if i % 2 == 0 { random.unit() * 30.0 } else { f64::from_bits(random.next()) }).collect();
    let (x, y): (Vec<f64>, Vec<f64>) = (next(), next());
    macro_rules! levels {
        ($($trait:ident $name:ident)*) => {$({
            struct Function;
            impl Map for Function {
                type In = (f64, f64);
                type Out = (f64,);
                #[inline(always)]
                fn eval(&self, (x, y): (f64, f64)) -> (f64,) {
                    ($trait::$name(x, y),)
                }
            }
            let [want, higher @ ..] = Level::ALL.map(|level| {
                set_level(level);
                let mut z = vec![0.0f64; x.len()];
                // SAFETY: three arrays of the same length.
                unsafe { map(&Function, x.len(), &[x.as_ptr().cast(), y.as_ptr().cast()], &[z.as_mut_ptr().cast()]) };
                z
            });
            for (i, (got, want)) in higher.iter().flat_map(|z| z.iter().zip(&want).enumerate()) {
                let equal = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                assert!(equal, "{}({:e}, {:e}) is {got:e}, not {want:e}", stringify!($name), x[i], y[i]);
            }
        })*};
    }
    levels!(Num pow Float atan2 Float hypot Float logaddexp);
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

/// Doubles near multiples of π/2, with sine and cosine, from mpmath: first the nearest ones.
const SINES_OF_DOUBLES: [(f64, f64, f64); 8] = [
    (5.319372648326541e+255, 1.0, -4.687165924254628e-19),
    (1.0638745296653083e+256, -9.374331848509255e-19, -1.0),
    (45.553093477052, 1.0, -6.189806365883577e-19),
    (3.924293714572882e+298, 1.0, 2.0149386674952238e-18),
    (7.848587429145764e+298, 4.0298773349904475e-18, -1.0),
    (2.1684714451092387e+20, -1.0, -5.128202323993418e-18),
    (0.7855, 0.7071787868720665, 0.7070347681678408),
    (1.7976931348623157e+308, 0.004961954789184062, -0.9999876894265599),
];

/// Numbers with erf, erfc and Φ, from mpmath.
const ERRORS: [(f64, f64, f64, f64); 16] = [
    (1e-300, 1.1283791670955126e-300, 1.0, 0.5),
    (1e-09, 1.1283791670955127e-09, 0.9999999988716208, 0.5000000003989423),
    (0.3, 0.3286267594591274, 0.6713732405408726, 0.6179114221889527),
    (0.475, 0.49825805371178755, 0.5017419462882124, 0.6826065133587409),
    (0.9999999, 0.842700751438961, 0.157299248561039, 0.8413447218714692),
    (1.0, 0.8427007929497149, 0.15729920705028513, 0.8413447460685429),
    (2.75, 0.9998993780778803, 0.00010062192211963683, 0.9970202367649454),
    (5.9, 0.9999999999999999, 7.190409783550478e-17, 0.9999999981824922),
    (6.1, 1.0, 6.3146021501937184e-18, 0.9999999994696577),
    (9.5, 1.0, 3.7692144856548797e-41, 1.0),
    (-0.3, -0.3286267594591274, 1.3286267594591274, 0.3820885778110474),
    (-0.48, -0.5027496706947648, 1.502749670694765, 0.3156136965162226),
    (-5.5, -0.9999999999999927, 1.9999999999999927, 1.8989562465887718e-08),
    (-12.25, -1.0, 2.0, 8.399796063633417e-35),
    (-26.5, -1.0, 2.0, 4.8461626603033206e-155),
    (-38.4, -1.0, 2.0, 6.4e-323),
];

/// Numbers with ln Γ, from mpmath.
const GAMMAS: [(f64, f64); 19] = [
    (5e-324, 744.4400719213812),
    (1e-20, 46.051701859880914),
    (0.3, 1.0957979948180756),
    (0.7499999, 0.20328106001739601),
    (0.9999999999999999, 6.408381213480008e-17),
    (1.0000000000000002, -1.2816762426960008e-16),
    (1.5, -0.12078223763524522),
    (2.0000000000000004, 1.8775396131086244e-16),
    (2.2500001, 0.12487177214704595),
    (3.9999999, 1.7917593436162897),
    (4.0, 1.791759469228055),
    (171.5, 709.1431630309282),
    (1000000000000000.0, 3.3538776394910668e+16),
    (9007199254740992.0, 3.2188848345802304e+17),
    (2.5599e+305, 1.79763453634738e+308),
    (-1e-300, 690.7755278982137),
    (-0.5, 1.2655121234846454),
    (-150.25, -604.7825011297857),
    (-4503599627370495.5, -1.5782258434492883e+17),
];
