//! Numbers are rounded to half floats: to the nearest, ties to even.

use half::{bf16, f16};
use minitensor_kernels::Float;

/// Pairs of a number and the half float that it is rounded to. The numbers are all half floats, the numbers in the middle between two
/// neighbours, and the numbers next to these. `of_bits` gives the half floats in their order. `step` is more than the distance from 1 to the next number of the type that is rounded.
fn cases(of_bits: impl Fn(u16) -> f64, step: f64) -> Vec<(f64, f64)> {
    let mut cases = vec![(0.0, 0.0), (f64::INFINITY, f64::INFINITY), (f64::NAN, f64::NAN)];
    for bits in 0..u16::MAX / 2 {
        let (x, next) = (of_bits(bits), of_bits(bits + 1));
        if x.is_infinite() || x.is_nan() {
            break;
        }
        // After the largest half float comes infinity, in place of a power of two.
        let middle = if next.is_infinite() { x + (x - of_bits(bits - 1)) / 2.0 } else { (x + next) / 2.0 };
        let even = if bits % 2 == 0 { x } else { next };
        cases.extend([(x, x), (middle, even), (middle * (1.0 - step), x), (middle * (1.0 + step), next)]);
    }
    cases.iter().flat_map(|(x, y)| [(*x, *y), (-x, -y)]).collect()
}

fn check(name: &str, x: f64, got: f64, expected: f64) {
    let is_same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
    assert!(is_same, "{name}({x:e}) is {got:e}, expected {expected:e}");
}

#[test]
fn numbers_are_rounded_to_the_nearest_half_float() {
    let of_f16 = |bits| f16::from_bits(bits).to_f64();
    let of_bf16 = |bits| bf16::from_bits(bits).to_f64();
    for (x, expected) in cases(of_f16, 1e-15) {
        check("float16", x, x.as_float16(), expected);
    }
    for (x, expected) in cases(of_bf16, 1e-15) {
        check("bfloat16", x, x.as_bfloat16(), expected);
    }
    for (x, expected) in cases(of_f16, 1e-7) {
        check("float16 of f32", x, (x as f32).as_float16().into(), expected);
    }
    // Between subnormal numbers, only the middle is an f32.
    for (x, expected) in cases(of_bf16, 1e-7).into_iter().filter(|(x, _)| f64::from(*x as f32) == *x || x.abs() > 1e-37)
    {
        check("bfloat16 of f32", x, (x as f32).as_bfloat16().into(), expected);
    }
    for (x, y) in [(f64::from_bits(1), 0.0), (-1e-300, -0.0), (1e300, f64::INFINITY), (f64::MIN, -f64::INFINITY)] {
        check("float16", x, x.as_float16(), y);
        check("bfloat16", x, x.as_bfloat16(), y);
    }
    for nan in [0x7fff_ffff, 0xffff_ffff, 0x7f80_0001] {
        let x = f32::from_bits(nan);
        for y in [x.as_float16(), x.as_bfloat16()] {
            assert!(y.is_nan() && y.is_sign_negative() == x.is_sign_negative(), "{nan:x} became {:x}", y.to_bits());
        }
    }
}
