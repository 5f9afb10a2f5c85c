//! Tests functions of `f64` at random arguments, against references of 256 bits.

use astro_float::{BigFloat, RoundingMode};

use crate::function::{Double, Double2};
use crate::wide::{BITS, Wide, double, number};

/// The number of arguments of each distribution in each range.
const SAMPLES: usize = 20_000;

/// Returns a generator of numbers between 0 and 1, the same in each run.
fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut random = seed;
    move || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Appends numbers from a range: uniformly distributed by value, and uniformly among the representable `f64`.
fn fill(x: &mut Vec<f64>, (low, high): (f64, f64), samples: usize, next: &mut impl FnMut() -> f64) {
    for _ in 0..samples {
        let way = next();
        x.push(low * (1.0 - way) + high * way);
        x.push(between(low, high, next()));
    }
}

/// Returns the largest error and its argument.
pub fn worst(function: &Double, factor: usize) -> (f64, f64) {
    let mut wide = Wide::new();
    let mut next = random(1);
    let mut x = Vec::new();
    for &(low, high) in function.ranges {
        fill(&mut x, (low, high), SAMPLES / factor, &mut next);
        x.extend([low, high]);
    }
    let mut y = vec![0.0; x.len()];
    crate::function::run(function.ours, &x, &mut y);
    let errors = x.iter().zip(&y).map(|(&x, &y)| {
        let argument = wide.number(x);
        let want = (function.reference)(&mut wide, &argument);
        (error(y, &want), x)
    });
    errors.fold((0.0, 0.0), |worst, this| if this.0 > worst.0 { this } else { worst })
}

/// Returns the largest error and its arguments for a function of two arguments.
pub fn worst_of_two(function: &Double2, factor: usize) -> (f64, [f64; 2]) {
    let mut wide = Wide::new();
    let mut next = [random(1), random(2)];
    let mut x = [Vec::new(), Vec::new()];
    for ranges in function.ranges {
        for ((x, &range), next) in x.iter_mut().zip(ranges).zip(&mut next) {
            fill(x, range, SAMPLES / factor, next);
        }
    }
    let mut z = vec![0.0; x[0].len()];
    crate::function::run2(function.ours, &x[0], &x[1], &mut z);
    let errors = x[0].iter().zip(&x[1]).zip(&z).map(|((&x, &y), &z)| {
        let arguments = [x, y].map(|x| wide.number(x));
        let want = (function.reference)(&mut wide, &arguments[0], &arguments[1]);
        (error(z, &want), [x, y])
    });
    errors.fold((0.0, [0.0; 2]), |worst, this| if this.0 > worst.0 { this } else { worst })
}

/// Returns the `f64` at the fraction `way` of the representable numbers from `low` to `high`.
fn between(low: f64, high: f64, way: f64) -> f64 {
    let order = |x: f64| if x < 0.0 { -((-x).to_bits() as i64) } else { x.to_bits() as i64 };
    let place = order(low) + ((order(high) as i128 - order(low) as i128) as f64 * way) as i64;
    if place < 0 { -f64::from_bits(-place as u64) } else { f64::from_bits(place as u64) }
}

/// Returns the error in units in the last place of the reference.
fn error(got: f64, want: &BigFloat) -> f64 {
    let nearest = double(want);
    if nearest.is_infinite() || nearest.is_nan() {
        return if got == nearest || got.is_nan() && nearest.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if !got.is_finite() {
        return f64::INFINITY;
    }
    let mut difference = want.sub(&number(got), BITS, RoundingMode::None);
    if let Some(exponent) = difference.exponent() {
        difference.set_exponent(exponent + 53 - want.exponent().unwrap_or(0).max(-1021));
    }
    double(&difference).abs()
}
