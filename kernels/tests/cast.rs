//! Conversions between all element types, against NumPy's rules.

use minitensor_kernels::{Cast, Complex, Truth, bf16, f16};
use std::fmt::Debug;

#[track_caller]
fn check<A: Cast<B> + Debug, B: PartialEq + Debug>(a: A, b: B) {
    assert_eq!(a.cast(), b, "from {a:?}");
}

#[test]
fn conversions_follow_numpy() {
    check::<i32, i8>(300, 44);
    check::<i32, u8>(-1, 255);
    check::<i64, u64>(-1, u64::MAX);
    check::<u64, i64>(u64::MAX, -1);
    check::<f64, i32>(1e20, i32::MAX);
    check::<f64, u8>(-3.0, 0);
    check::<f32, i64>(f32::NAN, 0);
    check::<f64, i8>(-1.9, -1);
    check::<f64, Truth>(f64::NAN, true.into());
    check::<f64, Truth>(-0.0, false.into());
    check::<i8, Truth>(-5, true.into());
    check::<bool, f64>(true, 1.0);
    check::<bool, i8>(true, 1);
    check::<bool, f16>(true, f16::ONE);
    check::<bool, Complex<f32>>(true, Complex::new(1.0, 0.0));
    check::<Complex<f64>, i32>(Complex::new(2.5, 7.0), 2);
    check::<Complex<f64>, Truth>(Complex::new(0.0, 1.0), true.into());
    check::<Complex<f64>, Complex<f32>>(Complex::new(0.5, -1.0), Complex::new(0.5, -1.0));
    check::<f32, Complex<f64>>(0.5, Complex::new(0.5, 0.0));
    check::<f16, f64>(f16::from_f32(0.5), 0.5);
    check::<f16, bf16>(f16::from_f32(0.5), bf16::from_f32(0.5));
    check::<bf16, i32>(bf16::from_f32(-3.0), -3);
    check::<bf16, Truth>(bf16::NEG_ZERO, false.into());
    check::<f64, f16>(65520.0, f16::INFINITY);
    check::<i64, f16>(1 << 40, f16::INFINITY);
    // Half of the last digit of a half plus a bit: rounding via f32 would round twice, and down.
    check::<f64, f16>(1.0 + 2f64.powi(-11) + 2f64.powi(-40), f16::from_bits(0x3c01));
    check::<f64, f16>(-1.0 - 3.0 * 2f64.powi(-11) + 2f64.powi(-40), f16::from_bits(0xbc01));
    check::<f64, f16>(1e-60, f16::ZERO);
    check::<f64, f16>(1e300, f16::INFINITY);
    check::<i32, bf16>((1 << 24) + (1 << 16) + 1, bf16::from_f32(16908288.0));
    check::<i64, f64>((1 << 53) + 2, 9007199254740994.0);
}

#[test]
fn every_f16_widens_and_narrows_exactly() {
    for bits in 0..=u16::MAX {
        let half = f16::from_bits(bits);
        let wide: f32 = half.cast();
        if half.is_nan() {
            assert!(wide.is_nan() && Cast::<f16>::cast(wide).is_nan(), "{bits:#x}");
        } else {
            assert_eq!(wide.to_bits(), half.to_f32_const().to_bits(), "{bits:#x}");
            assert_eq!(Cast::<f16>::cast(wide).to_bits(), bits);
        }
    }
}

#[test]
fn floats_round_to_the_nearest_half_with_ties_to_even() {
    // Every f32 whose low bits are at or next to a tie, for each sign and exponent.
    for high in 0..1u32 << 19 {
        for low in [0, 1, 0xfff, 0x1000, 0x1001, 0x1fff] {
            let wide = f32::from_bits(high << 13 | low);
            let got: f16 = wide.cast();
            let want = f16::from_f32_const(wide);
            assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{wide:e}: {got} is not {want}");
        }
    }
}

#[test]
fn all_pairs_of_types_convert() {
    macro_rules! pairs {
        ([$($a:ty),*] $all:tt) => { $(pairs!(@ $a, $all);)* };
        (@ $a:ty, [$($b:ty),*]) => {$(
            let one: $a = true.cast();
            let there: $b = one.cast();
            let back: $a = there.cast();
            assert_eq!(back, one, "{} to {} and back", stringify!($a), stringify!($b));
        )*};
    }
    macro_rules! square { ($($t:ty),*) => { pairs!([$($t),*] [$($t),*]) }; }
    square!(Truth, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>);
}
