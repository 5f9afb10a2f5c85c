//! Derivatives by dual numbers, compared with finite differences, and at the points where naive rules return NaN.

use minitensor_kernels::{Complex, Dual, Element, Field, Float, Num, Real, lit};

type Second = Dual<Dual<f64>>;

/// A function of one argument for numbers, dual numbers and nested dual numbers.
struct Unary {
    name: &'static str,
    value: fn(f64) -> f64,
    dual: fn(Dual<f64>) -> Dual<f64>,
    second: fn(Second) -> Second,
    points: &'static [f64],
}

/// The same for two arguments.
struct Binary {
    name: &'static str,
    value: fn(f64, f64) -> f64,
    dual: fn(Dual<f64>, Dual<f64>) -> Dual<f64>,
    second: fn(Second, Second) -> Second,
    points: &'static [(f64, f64)],
}

macro_rules! unary {
    ($($name:ident: |$x:ident| $body:expr, $points:expr;)*) => {[$({
        fn body<T: Float>($x: T) -> T { $body }
        Unary { name: stringify!($name), value: body, dual: body, second: body, points: &$points }
    }),*]};
}

macro_rules! binary {
    ($($name:ident: |$x:ident, $y:ident| $body:expr, $points:expr;)*) => {[$({
        fn body<T: Float>($x: T, $y: T) -> T { $body }
        Binary { name: stringify!($name), value: body, dual: body, second: body, points: &$points }
    }),*]};
}

const ANY: [f64; 6] = [-2.3, -0.7, -0.1, 0.2, 0.9, 3.4];
const POSITIVE: [f64; 5] = [0.1, 0.5, 1.3, 2.0, 7.5];
const WITHIN_ONE: [f64; 4] = [-0.8, -0.3, 0.2, 0.9];
const ABOVE_ONE: [f64; 3] = [1.2, 2.0, 6.5];

fn unaries() -> impl Iterator<Item = Unary> {
    unary! {
        negative: |x| x.negative(), ANY;
        neg: |x| -x, ANY;
        square: |x| x.square(), ANY;
        conj: |x| x.conj(), ANY;
        powi_0: |x| x.powi(0), ANY;
        powi_1: |x| x.powi(1), ANY;
        powi_5: |x| x.powi(5), ANY;
        powi_minus_3: |x| x.powi(-3), ANY;
        abs: |x| x.abs(), ANY;
        sign: |x| x.sign(), ANY;
        floor: |x| x.floor(), ANY;
        ceil: |x| x.ceil(), ANY;
        round: |x| x.round(), ANY;
        trunc: |x| x.trunc(), ANY;
        recip: |x| x.recip(), ANY;
        sqrt: |x| x.sqrt(), POSITIVE;
        rsqrt: |x| x.rsqrt(), POSITIVE;
        cbrt: |x| x.cbrt(), ANY;
        exp: |x| x.exp(), ANY;
        exp2: |x| x.exp2(), ANY;
        expm1: |x| x.expm1(), ANY;
        log: |x| x.log(), POSITIVE;
        log1p: |x| x.log1p(), POSITIVE;
        log2: |x| x.log2(), POSITIVE;
        log10: |x| x.log10(), POSITIVE;
        sin: |x| x.sin(), ANY;
        cos: |x| x.cos(), ANY;
        tan: |x| x.tan(), WITHIN_ONE;
        asin: |x| x.asin(), WITHIN_ONE;
        acos: |x| x.acos(), WITHIN_ONE;
        atan: |x| x.atan(), ANY;
        sinh: |x| x.sinh(), ANY;
        cosh: |x| x.cosh(), ANY;
        tanh: |x| x.tanh(), ANY;
        asinh: |x| x.asinh(), ANY;
        acosh: |x| x.acosh(), ABOVE_ONE;
        atanh: |x| x.atanh(), WITHIN_ONE;
        sigmoid: |x| x.sigmoid(), ANY;
        silu: |x| x.silu(), ANY;
        softplus: |x| x.softplus(), ANY;
        log_sigmoid: |x| x.log_sigmoid(), ANY;
        erf: |x| x.erf(), ANY;
        erfc: |x| x.erfc(), ANY;
        normal_cdf: |x| x.normal_cdf(), ANY;
        normal_pdf: |x| x.normal_pdf(), ANY;
        lgamma: |x| x.lgamma(), ANY;
        digamma: |x| x.digamma(), ANY;
        polygamma_2: |x| x.polygamma(2), ANY;
        pow_of_constant: |x| x.pow(lit(2.5)), POSITIVE;
        constant_to_the: |x| lit::<T>(2.5).pow(x), ANY;
        quotient_by: |x| lit::<T>(3) / x, ANY;
        select: |x| T::select(x.greater(lit(0)), x * x, -x), ANY;
        swish: |x| x * x.sigmoid(), ANY;
    }
    .into_iter()
}

const PAIRS: [(f64, f64); 6] = [(1.3, 0.4), (0.3, 2.5), (-1.2, 0.7), (2.1, -0.6), (-0.4, -3.1), (5.5, 1.7)];

fn binaries() -> impl Iterator<Item = Binary> {
    binary! {
        add: |x, y| x + y, PAIRS;
        sub: |x, y| x - y, PAIRS;
        mul: |x, y| x * y, PAIRS;
        div: |x, y| x / y, PAIRS;
        maximum: |x, y| x.maximum(y), PAIRS;
        minimum: |x, y| x.minimum(y), PAIRS;
        floor_divide: |x, y| x.floor_divide(y), PAIRS;
        remainder: |x, y| x.remainder(y), PAIRS;
        fmod: |x, y| x.fmod(y), PAIRS;
        rem: |x, y| x % y, PAIRS;
        pow: |x, y| x.pow(y), [(1.3, 0.4), (0.3, 2.5), (2.0, -1.5), (0.7, 0.0)];
        atan2: |x, y| x.atan2(y), PAIRS;
        hypot: |x, y| x.hypot(y), PAIRS;
        logaddexp: |x, y| x.logaddexp(y), PAIRS;
        copysign: |x, y| x.copysign(y), PAIRS;
        mul_add: |x, y| x.mul_add(y, x * x), PAIRS;
        chained: |x, y| { let mut z = x; z += y; z *= x; z -= y; z /= x; z }, PAIRS;
    }
    .into_iter()
}

#[track_caller]
fn assert_close(what: &str, got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{what}: {got} is not {want}");
}

fn central(f: impl Fn(f64) -> f64, x: f64) -> f64 {
    let h = 1e-5;
    (f(x + h) - f(x - h)) / (2.0 * h)
}

/// A variable of the inner and of the outer level.
fn second(x: f64) -> Second {
    Dual { value: Dual::variable(x), tangent: Dual::constant_of(1.0) }
}

#[test]
fn every_unary_primitive_agrees_with_finite_differences_twice_over() {
    for f in unaries() {
        for &x in f.points {
            let name = format!("{} at {x}", f.name);
            let got = (f.dual)(Dual::variable(x));
            // σ computes the larger of σ(x) and σ(−x) from the smaller; all other values equal those of the functions.
            let (value, units) = ((f.value)(x), if ["sigmoid", "swish"].contains(&f.name) { 2 } else { 0 });
            let apart = got.value.to_bits().abs_diff(value.to_bits());
            assert!(apart <= units, "the value of {name}: {} is not {value}", got.value);
            assert_close(&name, got.tangent, central(f.value, x), 1e-7);
            let nested = (f.second)(second(x)).tangent;
            assert_close(&format!("{name}, first order of two"), nested.value, got.tangent, 1e-14);
            let slope = |x| (f.dual)(Dual::variable(x)).tangent;
            assert_close(&format!("{name}, second order"), nested.tangent, central(slope, x), 1e-6);
        }
    }
}

#[test]
fn every_binary_primitive_agrees_with_finite_differences_in_both_arguments() {
    for f in binaries() {
        for &(x, y) in f.points {
            let name = format!("{} at ({x}, {y})", f.name);
            let by_x = (f.dual)(Dual::variable(x), Dual::constant_of(y));
            let by_y = (f.dual)(Dual::constant_of(x), Dual::variable(y));
            assert_eq!(by_x.value, (f.value)(x, y), "the value of {name}");
            assert_close(&format!("{name} by x"), by_x.tangent, central(|x| (f.value)(x, y), x), 1e-7);
            assert_close(&format!("{name} by y"), by_y.tangent, central(|y| (f.value)(x, y), y), 1e-7);
            let both = (f.dual)(Dual::variable(x), Dual::variable(y)).tangent;
            assert_close(&format!("{name} by both"), both, by_x.tangent + by_y.tangent, 1e-12);
        }
    }
}

#[test]
fn mixed_second_derivatives_of_binary_primitives_are_right() {
    for f in binaries() {
        for &(x, y) in f.points {
            // The inner level is the derivative by x, the outer by y.
            let mixed = (f.second)(
                Dual { value: Dual::variable(x), tangent: Dual::constant_of(0.0) },
                Dual { value: Dual::constant_of(y), tangent: Dual::constant_of(1.0) },
            );
            let by_y = |x| (f.dual)(Dual::constant_of(x), Dual::variable(y)).tangent;
            assert_close(&format!("{} at ({x}, {y})", f.name), mixed.tangent.tangent, central(by_y, x), 1e-6);
        }
    }
}

#[test]
fn a_tangent_of_zero_stays_zero_where_the_derivative_is_not_finite() {
    for f in unaries() {
        for x in [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let got = (f.dual)(Dual::constant_of(x));
            assert_eq!(got.tangent, 0.0, "{} at {x}", f.name);
        }
    }
    for f in binaries() {
        for x in [0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            for y in [0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
                let got = (f.dual)(Dual::constant_of(x), Dual::constant_of(y));
                assert_eq!(got.tangent, 0.0, "{} at ({x}, {y})", f.name);
            }
        }
    }
}

#[test]
fn a_first_derivative_of_zero_does_not_hide_the_second() {
    // The derivative of √(x² + 1) at 0: the inner tangent is 0, its derivative isn't.
    let root = (second(0.0).square() + Second::one()).sqrt();
    assert_eq!(root.tangent.tangent, 1.0);
}

/// The derivative of `f` at `x`.
fn slope(f: impl Fn(Dual<f64>) -> Dual<f64>, x: f64) -> f64 {
    f(Dual::variable(x)).tangent
}

#[test]
fn derivatives_keep_their_digits_in_the_tails() {
    assert_eq!(slope(Field::sigmoid, -1000.0), 0.0);
    assert_eq!(slope(Field::sigmoid, 1000.0), 0.0);
    assert_close("σ'(40) e⁴⁰", slope(Field::sigmoid, 40.0) * 40f64.exp(), 1.0, 1e-14);
    assert_close("σ'(−40) e⁴⁰", slope(Field::sigmoid, -40.0) * 40f64.exp(), 1.0, 1e-14);
    assert_eq!(slope(Float::softplus, 1000.0), 1.0);
    assert_eq!(slope(Float::log_sigmoid, -1000.0), 1.0);
    assert_eq!(slope(Field::tanh, 1000.0), 0.0);
    assert_eq!(slope(|x| x * lit(2), f64::INFINITY), 2.0);
    assert_eq!(slope(|x| x / lit(2), f64::INFINITY), 0.5);
}

#[test]
fn powers_have_their_limits_at_zero() {
    let zero = Dual::constant_of(0.0);
    assert_eq!(slope(|x| x.pow(zero), 0.0), 0.0);
    assert_eq!(slope(|x| x.pow(lit(1)), 0.0), 1.0);
    assert_eq!(slope(|x| x.pow(lit(2)), 0.0), 0.0);
    assert_eq!(slope(|x| x.pow(lit(2)), -3.0), -6.0);
    assert_eq!(slope(|y| zero.pow(y), 2.0), 0.0);
    assert_eq!(slope(|y| zero.pow(y), 0.0), 0.0);
    assert_eq!(slope(Field::sqrt, 0.0), f64::INFINITY);
    assert_eq!(second(0.0).pow(lit(2)).tangent.tangent, 2.0);
    assert_eq!(second(0.0).powi(2).tangent.tangent, 2.0);
}

#[test]
fn ties_split_evenly_and_the_branch_not_taken_contributes_nothing() {
    assert_eq!(slope(|x| x.maximum(lit(1)), 1.0), 0.5);
    assert_eq!(slope(|x| x.minimum(lit(1)), 1.0), 0.5);
    assert_eq!(slope(|x| x.maximum(x), 1.0), 1.0);
    assert_eq!(slope(|x| x.maximum(lit(0)), -1.0), 0.0);
    assert!(Dual::variable(f64::NAN).maximum(lit(0)).value.is_nan());
    assert_eq!(slope(Real::abs, 0.0), 0.0);
    let guarded = |x: Dual<f64>| Dual::select(x.greater(lit(0)), x.log(), Dual::zero());
    assert_eq!(slope(guarded, 0.0), 0.0);
    assert_eq!(slope(guarded, -1.0), 0.0);
}

#[test]
fn ratios_stay_finite_at_infinity_and_the_origin() {
    let inf = f64::INFINITY;
    let constant = Dual::constant_of;
    assert_eq!(slope(|x| x.hypot(constant(0.0)), 0.0), 0.0);
    assert_eq!(slope(|x| x.hypot(constant(1.0)), -inf), -1.0);
    assert_eq!(slope(|x| x.hypot(constant(inf)), 1.0), 0.0);
    assert_close("hypot(1e200, 1e200)", slope(|x| x.hypot(constant(1e200)), 1e200), 0.5f64.sqrt(), 1e-15);
    assert_eq!(slope(|x| x.logaddexp(constant(0.0)), 1000.0), 1.0);
    assert_eq!(slope(|x| x.logaddexp(constant(-inf)), -inf), 0.5);
    assert_eq!(slope(|x| x.logaddexp(constant(inf)), 0.0), 0.0);
    assert_eq!(slope(|y| y.atan2(constant(0.0)), 0.0), 0.0);
    assert_close("atan2 far away", slope(|y| y.atan2(constant(1e200)), 1e200) * 1e200, 0.5, 1e-15);
}

#[test]
fn complex_functions_have_complex_derivatives() {
    let z = Complex::new(0.6, -0.8);
    type Function = fn(Dual<Complex<f64>>) -> Dual<Complex<f64>>;
    let cases: [(&str, Function); 8] = [
        ("exp", Field::exp),
        ("log", Field::log),
        ("sqrt", Field::sqrt),
        ("asin", Field::asin),
        ("acosh", Field::acosh),
        ("tanh", Field::tanh),
        ("sigmoid", Field::sigmoid),
        ("pow", |z| z.pow(lit(2.5))),
    ];
    for (name, f) in cases {
        let h = 1e-5;
        let at = |z| f(Dual::constant_of(z)).value;
        let want = (at(z + h) - at(z - h)) / (2.0 * h);
        let got = f(Dual::variable(z)).tangent;
        assert!((got - want).norm() < 1e-8, "{name}: {got} is not {want}");
    }
}
