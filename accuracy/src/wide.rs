//! [`Wide`]: functions of 256 bits, the references for functions of `f64`.

use astro_float::{BigFloat, Consts, RoundingMode, Sign};

/// The precision of the reference in bits.
pub const BITS: usize = 256;
/// The Bernoulli numbers B₂, B₄, …
const BERNOULLI: [(f64, f64); 16] = [
    (1.0, 6.0),
    (-1.0, 30.0),
    (1.0, 42.0),
    (-1.0, 30.0),
    (5.0, 66.0),
    (-691.0, 2730.0),
    (7.0, 6.0),
    (-3617.0, 510.0),
    (43867.0, 798.0),
    (-174611.0, 330.0),
    (854513.0, 138.0),
    (-236364091.0, 2730.0),
    (8553103.0, 6.0),
    (-23749461029.0, 870.0),
    (8615841276005.0, 14322.0),
    (-7709321041217.0, 510.0),
];

/// The context for computing references.
pub struct Wide(Consts);

macro_rules! wide {
    ($($name:ident)*) => {$(
        pub fn $name(&mut self, x: &BigFloat) -> BigFloat {
            x.$name(BITS, RoundingMode::None, &mut self.0)
        }
    )*};
}

impl Wide {
    pub fn new() -> Wide {
        Wide(Consts::new().expect("memory for constants"))
    }

    wide! { exp ln log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh }

    pub fn consts(&mut self) -> &mut Consts {
        &mut self.0
    }
    pub fn expm1(&mut self, x: &BigFloat) -> BigFloat {
        // 2 sinh(x / 2) e^(x / 2), likewise.
        let half = self.over(x, &self.number(2.0));
        let product = self.sinh(&half).mul(&self.exp(&half), BITS, RoundingMode::None);
        product.mul(&self.number(2.0), BITS, RoundingMode::None)
    }
    pub fn log1p(&mut self, x: &BigFloat) -> BigFloat {
        if x.abs_cmp(&self.number(0.5)).is_some_and(|order| order > 0) {
            let sum = self.plus(x, 1.0);
            return self.ln(&sum);
        }
        // 2 atanh(x / (2 + x)), which is accurate for small x.
        let ratio = self.over(x, &self.plus(x, 2.0));
        self.atanh(&ratio).mul(&self.number(2.0), BITS, RoundingMode::None)
    }
    /// erfc, by a series of positive terms for erf, or by a continued fraction where 1 − erf would cancel.
    pub fn erfc(&mut self, x: &BigFloat) -> BigFloat {
        let square = x.mul(x, BITS, RoundingMode::None);
        if x.abs_cmp(&self.number(3.0)).is_some_and(|order| order < 0) {
            let erf = self.erf(x);
            return self.number(1.0).sub(&erf, BITS, RoundingMode::None);
        }
        let bell = self.bell(&square);
        // x + (1/2) / (x + (2/2) / (x + (3/2) / …)), evaluated from the end.
        let a = x.abs();
        let mut fraction = a.clone();
        for k in (1..300).rev() {
            fraction = self.over(&self.number(0.5 * k as f64), &fraction).add(&a, BITS, RoundingMode::None);
        }
        let right = self.over(&bell, &fraction);
        if x.is_negative() { self.number(2.0).sub(&right, BITS, RoundingMode::None) } else { right }
    }
    pub fn erf(&mut self, x: &BigFloat) -> BigFloat {
        if x.abs_cmp(&self.number(7.0)).is_some_and(|order| order > 0) {
            return self.number(if x.is_negative() { -1.0 } else { 1.0 });
        }
        // 2 e^−x² / √π · (x + 2 x³ / 3 + 4 x⁵ / 15 + …)
        let square = x.mul(x, BITS, RoundingMode::None);
        let (mut term, mut sum) = (x.clone(), x.clone());
        for k in 1..400 {
            let ratio = self.over(&square, &self.number(k as f64 + 0.5));
            term = term.mul(&ratio, BITS, RoundingMode::None);
            sum = sum.add(&term, BITS, RoundingMode::None);
            if term.exponent() < sum.exponent().map(|e| e - 200) {
                break;
            }
        }
        sum.mul(&self.bell(&square), BITS, RoundingMode::None).mul(&self.number(2.0), BITS, RoundingMode::None)
    }
    /// e^−square / √π
    fn bell(&mut self, square: &BigFloat) -> BigFloat {
        let root = self.consts().pi(BITS, RoundingMode::None).sqrt(BITS, RoundingMode::None);
        let exp = self.exp(&square.neg());
        self.over(&exp, &root)
    }
    pub fn normal_cdf(&mut self, x: &BigFloat) -> BigFloat {
        let root = self.number(2.0).sqrt(BITS, RoundingMode::None);
        let argument = self.over(&x.neg(), &root);
        let erfc = self.erfc(&argument);
        self.over(&erfc, &self.number(2.0))
    }
    pub fn normal_pdf(&mut self, x: &BigFloat) -> BigFloat {
        let square = self.over(&x.mul(x, BITS, RoundingMode::None), &self.number(2.0));
        let root = self.number(2.0).sqrt(BITS, RoundingMode::None);
        let bell = self.bell(&square);
        self.over(&bell, &root)
    }
    /// ln Γ of a positive number, by Stirling's series after shifting the argument up.
    pub fn lgamma(&mut self, x: &BigFloat) -> BigFloat {
        let (mut z, mut product) = (x.clone(), self.number(1.0));
        while z.abs_cmp(&self.number(60.0)).is_some_and(|order| order < 0) {
            product = product.mul(&z, BITS, RoundingMode::None);
            z = self.plus(&z, 1.0);
        }
        let square = z.mul(&z, BITS, RoundingMode::None);
        let (mut power, mut series) = (z.clone(), self.number(0.0));
        for (k, (above, below)) in (1..).zip(BERNOULLI) {
            let term = self.over(&self.number(above), &self.number(below * (2 * k * (2 * k - 1)) as f64));
            series = series.add(&self.over(&term, &power), BITS, RoundingMode::None);
            power = power.mul(&square, BITS, RoundingMode::None);
        }
        let pi = self.consts().pi(BITS, RoundingMode::None);
        let turn = pi.mul(&self.number(2.0), BITS, RoundingMode::None);
        let (log, constant, rest) = (self.ln(&z), self.ln(&turn), self.ln(&product));
        let main = self.plus(&z, -0.5).mul(&log, BITS, RoundingMode::None).sub(&z, BITS, RoundingMode::None);
        let constant = self.over(&constant, &self.number(2.0)).add(&series, BITS, RoundingMode::None);
        main.add(&constant, BITS, RoundingMode::None).sub(&rest, BITS, RoundingMode::None)
    }
    pub fn pow(&mut self, x: &BigFloat, y: &BigFloat) -> BigFloat {
        let power = self.ln(x).mul(y, BITS, RoundingMode::None);
        self.exp(&power)
    }
    pub fn atan2(&mut self, y: &BigFloat, x: &BigFloat) -> BigFloat {
        let right = self.over(y, x);
        let angle = self.atan(&right);
        if !x.is_negative() {
            return angle;
        }
        let pi = self.consts().pi(BITS, RoundingMode::None);
        if y.is_negative() {
            angle.sub(&pi, BITS, RoundingMode::None)
        } else {
            angle.add(&pi, BITS, RoundingMode::None)
        }
    }
    pub fn hypot(&mut self, x: &BigFloat, y: &BigFloat) -> BigFloat {
        let squares = [x, y].map(|x| x.mul(x, BITS, RoundingMode::None));
        squares[0].add(&squares[1], BITS, RoundingMode::None).sqrt(BITS, RoundingMode::None)
    }
    pub fn number(&self, x: f64) -> BigFloat {
        number(x)
    }
    pub fn plus(&self, x: &BigFloat, y: f64) -> BigFloat {
        x.add(&self.number(y), BITS, RoundingMode::None)
    }
    pub fn over(&self, x: &BigFloat, y: &BigFloat) -> BigFloat {
        x.div(y, BITS, RoundingMode::None)
    }
}

/// Converts an `f64` exactly. `BigFloat::from_f64` is wrong for subnormal numbers.
pub fn number(x: f64) -> BigFloat {
    if x == 0.0 || x.abs() >= f64::MIN_POSITIVE {
        return BigFloat::from_f64(x, BITS);
    }
    let mut number = BigFloat::from_f64(x * 2f64.powi(64), BITS);
    number.set_exponent(number.exponent().unwrap_or(0) - 64);
    number
}

/// Converts to the nearest `f64` or one of its neighbours.
pub fn double(x: &BigFloat) -> f64 {
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
