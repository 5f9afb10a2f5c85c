//! Functions of `f64`, at random numbers, against 256 bits.

use astro_float::{BigFloat, Consts, RoundingMode, Sign};

use crate::function::Double;

/// Bits of the reference.
const BITS: usize = 256;
/// Numbers of each kind that are tried in each range.
const SAMPLES: usize = 20_000;

/// What the references compute with.
pub struct Wide(Consts);

macro_rules! wide {
    ($($name:ident)*) => {$(
        pub fn $name(&mut self, x: &BigFloat) -> BigFloat {
            x.$name(BITS, RoundingMode::None, &mut self.0)
        }
    )*};
}

impl Wide {
    wide! { exp ln log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh }

    pub fn consts(&mut self) -> &mut Consts {
        &mut self.0
    }
    pub fn log1p(&mut self, x: &BigFloat) -> BigFloat {
        let sum = self.plus(x, 1.0);
        self.ln(&sum)
    }
    pub fn number(&self, x: f64) -> BigFloat {
        BigFloat::from_f64(x, BITS)
    }
    pub fn plus(&self, x: &BigFloat, y: f64) -> BigFloat {
        x.add(&self.number(y), BITS, RoundingMode::None)
    }
    pub fn over(&self, x: &BigFloat, y: &BigFloat) -> BigFloat {
        x.div(y, BITS, RoundingMode::None)
    }
}

/// The largest error and where it is.
pub fn worst(function: &Double, factor: usize) -> (f64, f64) {
    let mut wide = Wide(Consts::new().expect("memory for constants"));
    let mut random = 1u64;
    let mut next = move || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut x = Vec::new();
    for &(low, high) in function.ranges {
        for _ in 0..SAMPLES / factor {
            // Evenly among the numbers, and evenly among the doubles.
            x.push(low + (high - low) * next());
            x.push(between(low, high, next()));
        }
        x.extend([low, high]);
    }
    let mut y = vec![0.0; x.len()];
    crate::function::run(function.ours, &x, &mut y);
    let mut worst = (0.0, 0.0);
    for (&x, &y) in x.iter().zip(&y) {
        let argument = wide.number(x);
        let want = (function.reference)(&mut wide, &argument);
        let error = error(y, &want);
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

/// The double so far on the way from `low` to `high`, by the number of doubles between them.
fn between(low: f64, high: f64, way: f64) -> f64 {
    let order = |x: f64| if x < 0.0 { -((-x).to_bits() as i64) } else { x.to_bits() as i64 };
    let place = order(low) + ((order(high) as i128 - order(low) as i128) as f64 * way) as i64;
    if place < 0 { -f64::from_bits(-place as u64) } else { f64::from_bits(place as u64) }
}

/// In units in the last place of the reference.
fn error(got: f64, want: &BigFloat) -> f64 {
    let nearest = double(want);
    if nearest.is_infinite() || nearest.is_nan() {
        return if got == nearest || got.is_nan() && nearest.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if !got.is_finite() {
        return f64::INFINITY;
    }
    let difference = double(&want.sub(&BigFloat::from_f64(got, BITS), BITS, RoundingMode::None));
    let exponent = want.exponent().unwrap_or(0).max(-1021);
    // In two steps, as the unit of a small number is no normal one.
    difference.abs() * 2f64.powi(-exponent / 2) * 2f64.powi(53 - exponent + exponent / 2)
}

/// To the nearest double, or one beside it.
fn double(x: &BigFloat) -> f64 {
    let Some((words, _, sign, exponent, _)) = x.as_raw_parts() else {
        return if x.is_nan() {
            f64::NAN
        } else if x.is_positive() {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        };
    };
    let Some(&top) = words.last().filter(|_| !x.is_zero()) else { return 0.0 };
    let fraction = top as f64 / 2f64.powi(64);
    let exponent = exponent.clamp(-2000, 1025);
    let size = fraction * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
    if sign == Sign::Neg { -size } else { size }
}
