//! Complex functions: compared with their inverses and with real functions, and at the special cases of the Array API.

use minitensor_kernels::{Complex, Element, Field, Num};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

type C = Complex<f64>;
type Function = fn(C) -> C;
type Real = fn(f64) -> f64;

fn c(re: f64, im: f64) -> C {
    Complex::new(re, im)
}

fn close(a: C, b: C, tolerance: f64) -> bool {
    (a - b).norm() <= tolerance * b.norm().max(1e-3)
}

#[test]
fn functions_undo_their_inverses_in_every_quadrant() {
    let pairs: [(&str, Function, Function); 9] = [
        ("exp log", Field::exp, Field::log),
        ("expm1 log1p", Field::expm1, Field::log1p),
        ("square sqrt", Num::square, Field::sqrt),
        ("sin asin", Field::sin, Field::asin),
        ("cos acos", Field::cos, Field::acos),
        ("tan atan", Field::tan, Field::atan),
        ("sinh asinh", Field::sinh, Field::asinh),
        ("cosh acosh", Field::cosh, Field::acosh),
        ("tanh atanh", Field::tanh, Field::atanh),
    ];
    for (name, f, inverse) in pairs {
        for re in [-30.0, -1.5, -0.5, 1e-3, 0.7, 2.0, 12.0] {
            for im in [-20.0, -0.8, -1e-3, 0.3, 1.1, 9.0] {
                let (z, back) = (c(re, im), f(inverse(c(re, im))));
                assert!(close(back, z, 2e-12), "{name} of {z} gives {back}");
            }
        }
    }
}

#[test]
fn on_the_real_line_they_are_the_real_functions() {
    let functions: [(&str, Function, Real); 14] = [
        ("exp", Field::exp, f64::exp),
        ("expm1", Field::expm1, f64::exp_m1),
        ("log", Field::log, f64::ln),
        ("log1p", Field::log1p, f64::ln_1p),
        ("log2", Field::log2, f64::log2),
        ("sqrt", Field::sqrt, f64::sqrt),
        ("sin", Field::sin, f64::sin),
        ("cos", Field::cos, f64::cos),
        ("tan", Field::tan, f64::tan),
        ("atan", Field::atan, f64::atan),
        ("sinh", Field::sinh, f64::sinh),
        ("tanh", Field::tanh, f64::tanh),
        ("asinh", Field::asinh, f64::asinh),
        ("sigmoid", Field::sigmoid, Field::sigmoid),
    ];
    for (name, f, real) in functions {
        for x in [1e-9, 1e-3, 0.4, 1.0, 3.0, 15.0] {
            let got = f(c(x, 0.0));
            assert!((got.re - real(x)).abs() <= 1e-14 * real(x).abs() && got.im == 0.0, "{name}({x}) is {got}");
        }
    }
}

#[test]
fn special_cases_are_those_of_the_array_api() {
    let same = |a: f64, b: f64| a.is_nan() && b.is_nan() || a == b && a.signum() == b.signum();
    let table: [(&str, Function, C, C); 29] = [
        ("exp", Field::exp, c(-INF, INF), c(0.0, 0.0)),
        ("exp", Field::exp, c(INF, NAN), c(INF, NAN)),
        ("exp", Field::exp, c(INF, 0.0), c(INF, 0.0)),
        ("exp", Field::exp, c(NAN, 0.0), c(NAN, 0.0)),
        ("log", Field::log, c(-0.0, 0.0), c(-INF, PI)),
        ("log", Field::log, c(0.0, 0.0), c(-INF, 0.0)),
        ("log", Field::log, c(-INF, INF), c(INF, 3.0 * FRAC_PI_4)),
        ("sqrt", Field::sqrt, c(-4.0, 0.0), c(0.0, 2.0)),
        ("sqrt", Field::sqrt, c(-4.0, -0.0), c(0.0, -2.0)),
        ("sqrt", Field::sqrt, c(-INF, NAN), c(NAN, INF)),
        ("sqrt", Field::sqrt, c(NAN, INF), c(INF, INF)),
        ("sqrt", Field::sqrt, c(INF, 1.0), c(INF, 0.0)),
        ("asin", Field::asin, c(0.0, 0.0), c(0.0, 0.0)),
        ("acos", Field::acos, c(0.0, 0.0), c(FRAC_PI_2, -0.0)),
        ("acos", Field::acos, c(-INF, 1.0), c(PI, -INF)),
        ("acosh", Field::acosh, c(0.0, 0.0), c(0.0, FRAC_PI_2)),
        ("acosh", Field::acosh, c(-INF, INF), c(INF, 3.0 * FRAC_PI_4)),
        ("asinh", Field::asinh, c(1.0, INF), c(INF, FRAC_PI_2)),
        ("asinh", Field::asinh, c(NAN, 0.0), c(NAN, 0.0)),
        ("atanh", Field::atanh, c(1.0, 0.0), c(INF, 0.0)),
        ("atanh", Field::atanh, c(INF, 1.0), c(0.0, FRAC_PI_2)),
        ("atanh", Field::atanh, c(0.0, NAN), c(0.0, NAN)),
        ("sinh", Field::sinh, c(INF, 0.0), c(INF, 0.0)),
        ("sinh", Field::sinh, c(NAN, 0.0), c(NAN, 0.0)),
        ("cosh", Field::cosh, c(0.0, 0.0), c(1.0, 0.0)),
        ("tanh", Field::tanh, c(INF, 1.0), c(1.0, 0.0)),
        ("tanh", Field::tanh, c(INF, NAN), c(1.0, 0.0)),
        ("sigmoid", Field::sigmoid, c(-800.0, 0.0), c(0.0, 0.0)),
        ("sigmoid", Field::sigmoid, c(800.0, 0.0), c(1.0, 0.0)),
    ];
    for (name, f, z, want) in table {
        let got = f(z);
        assert!(same(got.re, want.re) && same(got.im, want.im), "{name}({z}) is {got}, not {want}");
    }
}

#[test]
fn powers_and_reciprocals_are_exact_where_they_can_be() {
    assert_eq!(C::zero().pow(C::zero()), C::one());
    assert_eq!(C::zero().pow(c(2.0, 1.0)), C::zero());
    assert!(C::zero().pow(c(-1.0, 0.0)).re.is_nan());
    assert_eq!(c(1.0, 1.0).pow(c(2.0, 0.0)), c(0.0, 2.0));
    assert_eq!(c(0.0, 2.0).powi(-2), c(-0.25, 0.0));
    let small = c(1e200, 1e200).powi(-3);
    assert_eq!((small.re, small.im), (0.0, 0.0));
    assert!(close(Num::pow(c(1.0, 2.0), c(0.5, 0.0)), Field::sqrt(c(1.0, 2.0)), 1e-15));
    assert_eq!(Field::recip(c(1e300, 1e300)), c(0.5e-300, -0.5e-300));
    assert_eq!(Field::recip(c(INF, 1.0)), C::zero());
    assert!(close(Field::sqrt(c(1e308, 1e308)) * 1e-154, Field::sqrt(c(1.0, 1.0)), 1e-15));
    assert!(close(Field::sqrt(c(1e-310, 1e-310)) * 1e155, Field::sqrt(c(1.0, 1.0)), 1e-12));
    assert!(close(Field::log1p(c(1e-20, 1e-20)), c(1e-20, 1e-20), 1e-35));
    assert!(close(Field::exp(c(710.0, FRAC_PI_4)) * 1e-308, c(1.579_672_848_288_2, 1.579_672_848_288_2), 1e-12));
}
