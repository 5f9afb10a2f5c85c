//! The primitives at NaN, infinities, signed zeros and the limits of the integers.

use minitensor_kernels::{Complex, Const, Element, Field, Float, Int, Num, Real, lit};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Equality that distinguishes the signs of zeros and treats NaN as equal to NaN.
fn same(a: f64, b: f64) -> bool {
    a.is_nan() && b.is_nan() || a == b && a.is_sign_negative() == b.is_sign_negative()
}

macro_rules! table {
    ($($call:expr => $want:expr;)*) => {$({
        let (got, want) = ($call, $want);
        assert!(same(got, want), "{} is {got}, not {want}", stringify!($call));
    })*};
}

#[test]
fn sigmoids_are_right_in_both_tails() {
    table! {
        Field::sigmoid(INF) => 1.0;
        Field::sigmoid(-INF) => 0.0;
        Field::sigmoid(NAN) => NAN;
        Field::sigmoid(0.0) => 0.5;
        Field::sigmoid(-700.0) => (-700f64).exp();
        Float::silu(INF) => INF;
        Float::silu(-INF) => -0.0;
        Float::silu(NAN) => NAN;
        Float::silu(0.0) => 0.0;
        Float::silu(-0.0) => -0.0;
        Float::silu(1e300) => 1e300;
        Float::silu(-1e300) => -0.0;
        Float::silu(1e250) => 1e250;
        Float::silu(2.3e279) => 2.3e279;
        Float::silu(1e280) => 1e280;
        Float::silu(1e21f32) as f64 => 1e21f32 as f64;
        Float::silu(7.9e28f32) as f64 => 7.9e28f32 as f64;
        Float::silu(1e30f32) as f64 => 1e30f32 as f64;
        Float::silu(-700.0) => -700.0 * (-700f64).exp();
        Float::silu(f32::MAX) as f64 => f32::MAX as f64;
        Float::silu(-f32::MAX) as f64 => -0.0;
        Float::silu(-0f32) as f64 => -0.0;
        Float::silu(1e-40f32) as f64 => 0.5e-40f32 as f64;
        Float::softplus(INF) => INF;
        Float::softplus(-INF) => 0.0;
        Float::softplus(NAN) => NAN;
        Float::softplus(800.0) => 800.0;
        Float::softplus(-700.0) => (-700f64).exp();
        Float::log_sigmoid(INF) => 0.0;
        Float::log_sigmoid(-INF) => -INF;
        Float::log_sigmoid(NAN) => NAN;
        Float::log_sigmoid(-800.0) => -800.0;
        Float::log_sigmoid(700.0) => -(-700f64).exp();
        Float::logaddexp(INF, INF) => INF;
        Float::logaddexp(-INF, -INF) => -INF;
        Float::logaddexp(INF, -INF) => INF;
        Float::logaddexp(-INF, 3.0) => 3.0;
        Float::logaddexp(NAN, -INF) => NAN;
        Float::logaddexp(1000.0, 1000.0) => 1000.0 + 2f64.ln();
        Field::log1p(1e-300) => 1e-300;
        Field::expm1(-1e-300) => -1e-300;
        Field::expm1(-INF) => -1.0;
        Field::log1p(-1.0) => -INF;
        Field::log1p(-0.0) => -0.0;
    }
}

#[test]
fn real_functions_follow_the_array_api() {
    table! {
        Real::maximum(NAN, 1.0) => NAN;
        Real::maximum(1.0, NAN) => NAN;
        Real::minimum(NAN, 1.0) => NAN;
        Real::minimum(1.0, NAN) => NAN;
        Real::maximum(-INF, 1.0) => 1.0;
        Real::sign(-0.0) => -0.0;
        Real::sign(NAN) => NAN;
        Real::sign(-INF) => -1.0;
        Real::round(2.5) => 2.0;
        Real::round(-0.5) => -0.0;
        Real::round(3.5) => 4.0;
        Num::pow(0.0, 0.0) => 1.0;
        Num::pow(NAN, 0.0) => 1.0;
        Num::pow(1.0, NAN) => 1.0;
        Num::pow(-8.0, 1.0 / 3.0) => NAN;
        Num::powi(0.0f64, 0) => 1.0;
        Num::powi(2.0f64, -3) => 0.125;
        Num::powi(1.0f64, i64::MIN) => 1.0;
        Float::rsqrt(0.0) => INF;
        Float::hypot(INF, NAN) => INF;
        Float::atan2(-0.0, -1.0) => -std::f64::consts::PI;
        Float::lgamma(0.0) => INF;
        Float::lgamma(-3.0) => INF;
        Float::erfc(30.0) => libm::erfc(30.0);
        Field::acosh(0.5) => NAN;
        Field::asinh(-0.0) => -0.0;
    }
}

#[test]
fn float_division_has_pythons_semantics() {
    table! {
        Real::floor_divide(7.0, 2.0) => 3.0;
        Real::floor_divide(-7.0, 2.0) => -4.0;
        Real::floor_divide(7.0, -2.0) => -4.0;
        Real::floor_divide(1.0, 0.1) => 9.0;
        Real::floor_divide(1.0, 0.0) => INF;
        Real::floor_divide(-1.0, 0.0) => -INF;
        Real::floor_divide(0.0, 0.0) => NAN;
        Real::floor_divide(INF, 2.0) => NAN;
        Real::floor_divide(1.0, INF) => 0.0;
        Real::floor_divide(-1.0, INF) => -1.0;
        Real::floor_divide(NAN, 1.0) => NAN;
        Real::floor_divide(-0.0, 2.0) => -0.0;
        Real::remainder(7.0, -2.0) => -1.0;
        Real::remainder(-7.0, 2.0) => 1.0;
        Real::remainder(-6.0, 2.0) => 0.0;
        Real::remainder(6.0, -2.0) => -0.0;
        Real::remainder(1.0, 0.0) => NAN;
        Real::remainder(INF, 2.0) => NAN;
        Real::remainder(1.0, INF) => 1.0;
        Real::remainder(-1.0, INF) => INF;
        Real::remainder(1.0, -INF) => -INF;
        Float::fmod(-7.0, 2.0) => -1.0;
    }
}

#[test]
fn integers_never_panic() {
    let all = [i32::MIN, -7, -2, -1, 0, 1, 2, 7, 31, 32, 33, i32::MAX];
    for a in all {
        for b in all {
            let (q, r) = (a.floor_divide(b), a.remainder(b));
            if b == 0 {
                assert_eq!((q, r), (0, 0));
            } else {
                assert_eq!(q.wrapping_mul(b).wrapping_add(r), a, "{a} by {b}");
                assert!(r == 0 || (r < 0) == (b < 0), "{a} % {b} is {r}");
            }
            let shift = |x: i64| x.clamp(i32::MIN as i64, i32::MAX as i64) as i32;
            let outside = !(0..32).contains(&b);
            assert_eq!(a.left_shift(b), if outside { 0 } else { a << b });
            assert_eq!(a.right_shift(b), if outside { shift(a as i64 >> 63) } else { a >> b });
        }
    }
    assert_eq!(Real::abs(i32::MIN), i32::MIN);
    assert_eq!(i8::MIN.floor_divide(-1), i8::MIN);
    assert_eq!(Num::negative(3u8), 253);
    assert_eq!(Real::sign(200u8), 1);
    assert_eq!(7u8.floor_divide(2), 3);
    assert_eq!(7u8.remainder(0), 0);
    assert_eq!(200u8.right_shift(9), 0);
    assert_eq!(Num::powi(2i8, 7), -128);
    assert_eq!((Num::powi(-1i32, -3), Num::powi(-1i32, -2), Num::powi(2i32, -1), Num::powi(0i32, -1)), (-1, 1, 0, 0));
    assert_eq!((Num::powi(255u8, -1), Num::powi(255u8, 2)), (0, 1));
}

#[test]
fn constants_saturate_and_lose_no_digits() {
    assert_eq!(lit::<i8>(300), 127);
    assert_eq!(lit::<u8>(-1), 0);
    assert_eq!(lit::<i64>(i64::MAX), i64::MAX);
    assert_eq!(lit::<i64>((1i64 << 53) + 1), (1 << 53) + 1);
    assert_eq!(lit::<u64>(u64::MAX), u64::MAX);
    assert_eq!(lit::<i64>(u64::MAX), i64::MAX);
    assert_eq!(lit::<i32>(1e20), i32::MAX);
    assert_eq!(lit::<i32>(NAN), 0);
    assert_eq!(lit::<f32>(0.1), 0.1f32);
    assert_eq!(lit::<f64>(true), 1.0);
    assert!(lit::<bool>(NAN) && !bool::constant(Const::Int(0)));
    assert_eq!(lit::<Complex<f32>>(2), Complex::new(2.0, 0.0));
}

#[test]
fn polygammas_agree_with_known_values() {
    // From mpmath, to 17 digits.
    let cases = [
        (0, 1.0, -0.577_215_664_901_532_9_f64),
        (0, 0.25, -4.227_453_533_376_265),
        (0, -1.5, 0.703_156_640_645_243_2),
        (0, 100.0, 4.600_161_852_738_087),
        (1, 1.0, 1.644_934_066_848_226_4),
        (1, 0.5, 4.934_802_200_544_679),
        (1, -0.5, 8.934_802_200_544_679),
        (2, 1.0, -2.404_113_806_319_188_6),
        (3, 1.0, 6.493_939_402_266_829),
        (3, -0.5, 193.409_091_034_002_44),
        (4, 1.0, -24.886_266_123_440_88),
    ];
    for (order, x, want) in cases {
        let got = Float::polygamma(x, order);
        assert!((got - want).abs() < 4e-15 * want.abs().max(1.0), "ψ⁽{order}⁾({x}) is {got}, not {want}");
    }
    table! {
        Float::digamma(0.0) => -INF;
        Float::digamma(-0.0) => INF;
        Float::digamma(-2.0) => NAN;
        Float::digamma(INF) => INF;
        Float::polygamma(INF, 1) => 0.0;
        Float::polygamma(-2.0, 1) => INF;
        Float::polygamma(NAN, 1) => NAN;
        Float::polygamma(1.0, 13) => NAN;
    }
}
