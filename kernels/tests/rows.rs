//! Reductions of a row.

mod lcg;

use lcg::Lcg;
use minitensor_kernels::Complex;
use minitensor_kernels::rows::{argmax, argmin, dot, max, min, prod, sum, sum_map};
use minitensor_kernels::simd::{Level, set_level};

const LENGTHS: [usize; 12] = [0, 1, 2, 31, 32, 33, 100, 4095, 4096, 4097, 12_288, 100_003];

#[test]
fn integers_reduce_exactly_at_every_length() {
    let mut random = Lcg(3);
    for n in LENGTHS {
        let x: Vec<i32> = (0..n).map(|_| random.next() as i32).collect();
        let y: Vec<i32> = (0..n).map(|_| random.next() as i32).collect();
        assert_eq!(sum(&x), x.iter().fold(0i32, |a, &b| a.wrapping_add(b)), "{n}");
        assert_eq!(prod(&x), x.iter().fold(1i32, |a, &b| a.wrapping_mul(b)), "{n}");
        let products = x.iter().zip(&y).fold(0i32, |a, (&x, &y)| a.wrapping_add(x.wrapping_mul(y)));
        assert_eq!(dot(&x, &y), products, "{n}");
        assert_eq!(max(&x), x.iter().copied().max(), "{n}");
        assert_eq!(min(&x), x.iter().copied().min(), "{n}");
        let first = |v: Option<i32>| v.and_then(|v| x.iter().position(|&x| x == v));
        assert_eq!(argmax(&x), first(max(&x)), "{n}");
        assert_eq!(argmin(&x), first(min(&x)), "{n}");
    }
}

#[test]
fn a_long_sum_of_floats_loses_few_digits() {
    let x = vec![0.1f32; 10_000_000];
    let exact = 0.1f32 as f64 * x.len() as f64;
    assert!((sum(&x) as f64 - exact).abs() / exact < 1e-6);
    assert!((dot(&x, &x) as f64 - exact * 0.1f32 as f64).abs() / exact < 1e-6);
    assert!((sum_map(&x, |v| v as f64) - exact).abs() / exact < 1e-15);
}

#[test]
fn every_level_sums_to_the_same_bits() {
    let mut random = Lcg(5);
    let x: Vec<f32> = (0..50_001).map(|_| random.unit() as f32).collect();
    let sums = Level::ALL.map(|level| {
        set_level(level);
        (sum(&x).to_bits(), dot(&x, &x).to_bits(), sum_map(&x, |v| v.exp()).to_bits())
    });
    assert!(sums.iter().all(|s| *s == sums[0]), "{sums:?}");
}

#[test]
fn nan_wins_and_the_first_extremum_is_named() {
    let x = [1.0, f64::NAN, 7.0, f64::NAN];
    assert!(max(&x).unwrap().is_nan() && min(&x).unwrap().is_nan());
    assert_eq!((argmax(&x), argmin(&x)), (Some(1), Some(1)));
    let x = [3, 9, 1, 9, 1];
    assert_eq!((argmax(&x), argmin(&x)), (Some(1), Some(2)));
    assert_eq!((max::<f32>(&[]), argmax::<f32>(&[]), sum::<f32>(&[]), prod::<f32>(&[])), (None, None, 0.0, 1.0));
    let mut long = vec![0f32; 5000];
    long[4097] = f32::NAN;
    assert_eq!(argmax(&long), Some(4097));
    assert_eq!(max(&[f64::NEG_INFINITY; 3]), Some(f64::NEG_INFINITY));
    assert_eq!(sum(&[Complex::new(1.0, 2.0); 3]), Complex::new(3.0, 6.0));
}
