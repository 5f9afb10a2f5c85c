//! Bits of floats in element and row bodies, against those of Rust's floats.

use std::sync::Mutex;

use minitensor::kernels::program::Program;
use minitensor::kernels::simd::{detected, levels, set_level};
use minitensor::prelude::*;
use minitensor_ops as _;

/// The inverse square root of Quake III Arena (1999), with one step of Newton's method.
#[custom_op(name = "bits::fast_rsqrt", dtype = (x: T) -> T where T: f32)]
fn fast_rsqrt<T: Float>(x: T) -> T {
    let y = T::from_bits(0x5f3759df - (x.to_bits() >> 1));
    y * (1.5 - 0.5 * x * y * y)
}

/// Rounded to bfloat16, ties to even, by its bits.
#[custom_op(name = "bits::rounded", backward = none, dtype = (x: T) -> T where T: f32)]
fn rounded<T: Float>(x: T) -> T {
    let bits = x.to_bits();
    let odd = (bits >> 16) & 1;
    if x.isnan() { x } else { T::from_bits((bits + 0x7fff + odd) & !0xffff) }
}

/// The numbers of representable floats between two.
#[custom_op(name = "bits::distance", backward = none, dtype = (x: T, y: T) -> (out: i64) where T: f32)]
fn distance<T: Float>(x: T, y: T) -> T {
    let (a, b) = (ordered(x), ordered(y));
    let between = if a < b { b - a } else { a - b };
    between.to_number()
}

/// Bits whose order is that of the numbers.
#[op_fn]
fn ordered<T: Float>(x: T) -> Bits<T> {
    let bits = x.to_bits();
    if bits >= 0x8000_0000 { !bits } else { bits | 0x8000_0000 }
}

/// All functions of integers, of the bits of two numbers.
#[custom_op(name = "bits::functions", backward = none, dtype = (x: T, y: T) -> (and: T, or: T, xor: T, sum: T, difference: T, product: T, quotient: T, rest: T))]
#[allow(clippy::type_complexity)]
fn functions<T: Float>(x: T, y: T) -> (T, T, T, T, T, T, T, T) {
    let (a, b) = (x.to_bits(), y.to_bits());
    (
        T::from_bits(a & b),
        T::from_bits(a | b),
        T::from_bits(a ^ b),
        T::from_bits(a + b),
        T::from_bits(a - b),
        T::from_bits(a * b),
        T::from_bits(a.floor_divide(b)),
        T::from_bits(a.remainder(b)),
    )
}

/// Shifts, tests and conversions.
#[custom_op(name = "bits::others", backward = none, dtype = (x: T, y: T) -> (left: T, right: T, less: bool, equal: bool, whole: T, number: T, larger: T, power: T))]
#[allow(clippy::type_complexity)]
fn others<T: Float>(x: T, y: T) -> (T, T, T::Mask, T::Mask, T, T, T, T) {
    let (a, b) = (x.to_bits(), y.to_bits());
    let count = y.to_integer();
    let low = a & 0xf;
    (
        T::from_bits(a << count),
        T::from_bits(a >> count),
        a < b,
        a == b,
        T::from_bits(y.to_integer()),
        b.to_number(),
        T::from_bits(a.max(b)),
        T::from_bits(low.powi(3) + low.pow(b & 7)),
    )
}

/// The parity of the bits of each row, and the largest exponent.
#[custom_op(name = "bits::of_rows", shape = (x: [.., n]) -> (out: [.., n], exponent: [..]), dtype = (x: R) -> (out: R, exponent: R) where R: f32)]
fn of_rows<R: Row>(x: R) -> (R, R) {
    let exponent = ((x.to_bits() >> 23) & 0xff).to_number() - 127;
    let shared = exponent.max();
    (x * R::from_bits((127 - shared).to_integer() << 23), shared)
}

/// Runs a test with machine code and with the interpreter.
fn at_each_level(test: impl Fn() -> Result<()>) -> Result<()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    let results: Vec<_> = levels()
        .map(|level| {
            set_level(level);
            test().map_err(|e| e.context(format!("{level:?}")))
        })
        .collect();
    set_level(detected());
    results.into_iter().collect()
}

/// Numbers of all kinds: small and large integers, subnormal ones, infinities and NaN.
fn numbers() -> Vec<f64> {
    let mut all = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        3.7,
        -3.7,
        31.0,
        32.0,
        63.0,
        64.0,
        65535.5,
        65536.0,
        16_777_217.0,
        2_147_483_648.0,
        -2_147_483_648.0,
        4_294_967_040.0,
        4_294_967_296.0,
        9.2e18,
        1.8e19,
        1.9e19,
        -9.3e18,
        1e-40,
        5e-324,
        1e300,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::from(f32::MAX),
    ];
    // A linear congruential generator.
    let mut state = 1u64;
    for _ in 0..600 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.push(f64::from(f32::from_bits((state >> 32) as u32)));
    }
    all
}

macro_rules! agree {
    ($name:ident, $t:ident, $word:ident, $signed:ident) => {
        #[test]
        fn $name() -> Result<()> {
            let all: Vec<$t> = numbers().iter().map(|x| *x as $t).collect();
            let pairs: Vec<($t, $t)> =
                (0..all.len() * 31).map(|k| (all[k % all.len()], all[k * 7 % all.len()])).collect();
            let n = pairs.len();
            let x = Tensor::from_vec(pairs.iter().map(|p| p.0).collect::<Vec<_>>(), [n])?;
            let y = Tensor::from_vec(pairs.iter().map(|p| p.1).collect::<Vec<_>>(), [n])?;
            let bits = |x: $t| if x.is_nan() { $t::NAN.to_bits() } else { x.to_bits() };
            let of = |f: &dyn Fn($word, $word) -> $word| -> Vec<$t> {
                pairs.iter().map(|(x, y)| $t::from_bits(f(bits(*x), bits(*y)))).collect()
            };
            let is_nan = |x: $t| x.is_nan();
            let check = |what: &str, ours: &Tensor, expected: Vec<$t>| -> Result<()> {
                for (k, (a, b)) in ours.to_vec::<$t>()?.iter().zip(&expected).enumerate() {
                    // The sign and payload of NaN may differ.
                    assert!(
                        a.to_bits() == b.to_bits() || is_nan(*a) && is_nan(*b),
                        "{what} of {:?}: {a:e}, not {b:e}",
                        pairs[k]
                    );
                }
                Ok(())
            };
            let results = <[Tensor; 8]>::from(functions::call(&x, &y)?);
            check("and", &results[0], of(&|a, b| a & b))?;
            check("or", &results[1], of(&|a, b| a | b))?;
            check("xor", &results[2], of(&|a, b| a ^ b))?;
            check("sum", &results[3], of(&$word::wrapping_add))?;
            check("difference", &results[4], of(&$word::wrapping_sub))?;
            check("product", &results[5], of(&$word::wrapping_mul))?;
            check("quotient", &results[6], of(&|a, b| a.checked_div(b).unwrap_or(0)))?;
            check("rest", &results[7], of(&|a, b| a.checked_rem(b).unwrap_or(0)))?;
            let results = <[Tensor; 8]>::from(others::call(&x, &y)?);
            let whole = |y: $t| match y {
                y if y >= 0.0 && y < $word::MAX as $t => y as $word,
                y if y < 0.0 && y >= $signed::MIN as $t => y as $signed as $word,
                _ => 0,
            };
            let shifted = |f: fn($word, u32) -> Option<$word>| -> Vec<$t> {
                let one = |(x, y): &($t, $t)| u32::try_from(whole(*y)).ok().and_then(|n| f(bits(*x), n)).unwrap_or(0);
                pairs.iter().map(one).map($t::from_bits).collect()
            };
            check("left", &results[0], shifted($word::checked_shl))?;
            check("right", &results[1], shifted($word::checked_shr))?;
            let less: Vec<bool> = pairs.iter().map(|(x, y)| bits(*x) < bits(*y)).collect();
            assert_eq!(results[2].to_vec::<bool>()?, less);
            let equal: Vec<bool> = pairs.iter().map(|(x, y)| bits(*x) == bits(*y)).collect();
            assert_eq!(results[3].to_vec::<bool>()?, equal);
            check("whole", &results[4], pairs.iter().map(|(_, y)| $t::from_bits(whole(*y))).collect())?;
            check("number", &results[5], pairs.iter().map(|(_, y)| bits(*y) as $t).collect())?;
            check("larger", &results[6], of(&|a, b| a.max(b)))?;
            check("power", &results[7], of(&|a, b| (a & 15).pow(3) + (a & 15).pow((b & 7) as u32)))?;
            Ok(())
        }
    };
}
agree!(bits_are_those_of_singles, f32, u32, i32);
agree!(bits_are_those_of_doubles, f64, u64, i64);

#[test]
fn known_algorithms_work() -> Result<()> {
    at_each_level(|| {
        let x: Vec<f32> = (1..1000).map(|k| k as f32 * 0.37).collect();
        for (x, y) in x.iter().zip(fast_rsqrt::call(&Tensor::from_vec(x.clone(), [999])?)?.to_vec::<f32>()?) {
            assert!((y * x.sqrt() - 1.0).abs() < 0.00176, "{x}: {y}");
        }
        let all: Vec<f32> = numbers().iter().map(|x| *x as f32).filter(|x| !x.is_nan()).collect();
        let t = Tensor::from_vec(all.clone(), [all.len()])?;
        let expected = t.cast(DType::Bf16)?.cast(DType::F32)?.to_vec::<f32>()?;
        assert_eq!(rounded::call(&t)?.to_vec::<f32>()?, expected);
        let x = Tensor::from_vec(vec![1.0f32, 0.0, -1.0, f32::MIN_POSITIVE], [4])?;
        let y = Tensor::from_vec(vec![1.0f32.next_up().next_up(), -0.0, -1.0f32.next_down(), 0.0], [4])?;
        assert_eq!(distance::call(&x, &y)?.to_vec::<i64>()?, [2, 1, 1, 0x80_0000]);
        Ok(())
    })
}

#[test]
fn rows_have_bits() -> Result<()> {
    at_each_level(|| {
        let x = Tensor::from_vec(vec![0.75f32, 3.0, 12.0, -100.0, 1.0, 0.1], [2, 3])?;
        let results = <[Tensor; 2]>::from(of_rows::call(&x)?);
        assert_eq!(results[1].to_vec::<f32>()?, [3.0, 6.0]);
        assert_eq!(results[0].to_vec::<f32>()?, [0.09375, 0.375, 1.5, -1.5625, 0.015625, 0.1 / 64.0]);
        Ok(())
    })
}

#[test]
fn programs_of_bits_are_those_of_their_text() -> Result<()> {
    for op in [functions::op(), others::op(), rounded::op()] {
        let text = op.program(&[], |_| true)?.expect("a program").to_json();
        assert_eq!(Program::from_json(&text).expect("a valid text").to_json(), text);
    }
    let program = rounded::op().program(&[], |_| true)?.expect("a program").to_string();
    assert!(program.contains("0x7fff"), "{program}");
    Ok(())
}

#[test]
fn opcheck_accepts_bits() -> Result<()> {
    for op in [rounded::op(), distance::op()] {
        minitensor::testing::opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}

#[test]
fn gradients_do_not_flow_through_bits() -> Result<()> {
    at_each_level(|| {
        let x = Tensor::from_vec(vec![4.0f32], [1])?.with_requires_grad()?;
        let y = fast_rsqrt::call(&x)?;
        let gradient = minitensor::autograd::grad(&[y], std::slice::from_ref(&x), &[None], Default::default())?;
        let y0 = f32::from_bits(0x5f3759df - (4.0f32.to_bits() >> 1));
        // Only the step of Newton's method depends on x.
        let expected = -0.5 * y0 * y0 * y0;
        let got = gradient[0].as_ref().expect("a gradient").to_vec::<f32>()?[0];
        assert!((got - expected).abs() < 1e-6, "{got} {expected}");
        Ok(())
    })
}
