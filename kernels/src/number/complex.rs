//! The algebra of complex numbers, with the special cases of the Array API (which are those of C99).
//!
//! `+ − ×` are those of the `num-complex` crate. Division scales both numbers by powers of two if their squares would
//! overflow or underflow (C99, annex G). The inverse functions are Kahan's ("Branch cuts for complex elementary
//! functions", 1987): correct on both sides of every cut, signed zeros included.

use num_complex::Complex;

use crate::number::machine::{power, stored_as_it_is};
use crate::number::scalar::{Const, Element, Field, Float, Machine, Num};

/// `iz`.
fn times_i<T: Float>(z: Complex<T>) -> Complex<T> {
    Complex::new(-z.im, z.re)
}

/// `z / i`.
fn over_i<T: Float>(z: Complex<T>) -> Complex<T> {
    Complex::new(z.im, -z.re)
}

/// Numbers whose exponent can be shifted.
trait Scaled: Sized {
    /// The binary exponent of the larger part. For 0 and non-finite numbers it is outside of the normal range.
    fn exponent(self) -> i32;
    /// The number times a power of two.
    fn scaled(self, exponent: i32) -> Self;
    /// The quotient if a number is not finite or the divisor is 0.
    fn divide_specially(self, other: Self) -> Self;
    /// `e^(|x| + iy) / 2`. Its parts may be finite even if `e^|x|` isn't.
    fn half_exp(self) -> Self;
}

/// The circular functions, computed from the hyperbolic functions of `iz`.
macro_rules! rotated {
    ($($circular:ident = $hyperbolic:ident),*) => {$(
        fn $circular(self) -> Self { over_i(Field::$hyperbolic(times_i(self))) }
    )*};
}

/// Beyond `$large`, `e⁻²ˣ` is negligible compared with 1. Numbers with exponents up to `$moderate` can be squared.
macro_rules! complex {
    ($t:ident, $large:literal, $moderate:literal) => {
        impl Scaled for Complex<$t> {
            fn exponent(self) -> i32 {
                const FRACTION: u32 = $t::MANTISSA_DIGITS - 1;
                let largest = self.re.abs().max(self.im.abs()).to_bits();
                (largest >> FRACTION) as i32 - ($t::MAX_EXP - 1)
            }
            fn scaled(self, exponent: i32) -> Self {
                let most = $t::MAX_EXP - 2;
                let (mut z, mut rest) = (self, exponent);
                while rest != 0 {
                    let step = rest.clamp(-most, most);
                    let power = (2.0 as $t).powi(step);
                    z = Complex::new(z.re * power, z.im * power);
                    rest -= step;
                }
                z
            }
            fn divide_specially(self, other: Self) -> Self {
                let is_infinite = |z: Self| z.re.is_infinite() || z.im.is_infinite();
                let is_finite = |z: Self| z.re.is_finite() && z.im.is_finite();
                // An infinite part becomes 1, any other 0.
                let unit = |v: $t| (if v.is_infinite() { 1.0 } else { 0.0 as $t }).copysign(v);
                let Complex { re: a, im: b } = self;
                let Complex { re: c, im: d } = other;
                if c == 0.0 && d == 0.0 && !(a.is_nan() && b.is_nan()) {
                    let infinity = $t::INFINITY.copysign(c);
                    Complex::new(infinity * a, infinity * b)
                } else if is_infinite(self) && is_finite(other) {
                    let (a, b) = (unit(a), unit(b));
                    Complex::new($t::INFINITY * (a * c + b * d), $t::INFINITY * (b * c - a * d))
                } else if is_finite(self) && is_infinite(other) {
                    let (c, d) = (unit(c), unit(d));
                    Complex::new(0.0 * (a * c + b * d), 0.0 * (b * c - a * d))
                } else {
                    self / other
                }
            }
            fn half_exp(self) -> Self {
                let (x, y) = (self.re.abs(), self.im);
                let e = x.exp();
                if e.is_infinite() && x.is_finite() {
                    let half = (0.5 * x).exp();
                    Complex::new(0.5 * half * y.cos() * half, 0.5 * half * y.sin() * half)
                } else {
                    Complex::new(0.5 * e * y.cos(), 0.5 * e * y.sin())
                }
            }
        }

        impl Element for Complex<$t> {
            type Mask = bool;
            #[inline(always)]
            fn constant(value: Const) -> Self {
                Complex::new($t::constant(value), 0.0)
            }
            #[inline(always)]
            fn equal(self, other: Self) -> bool {
                self.re == other.re && self.im == other.im
            }
            #[inline(always)]
            fn truthy(self) -> bool {
                self.re != 0.0 || self.im != 0.0
            }
            #[inline(always)]
            fn select(mask: bool, a: Self, b: Self) -> Self {
                if mask { a } else { b }
            }
        }

        impl Machine for Complex<$t> {
            stored_as_it_is!();
        }

        impl Num for Complex<$t> {
            #[inline(always)]
            fn negative(self) -> Self {
                -self
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            #[inline(always)]
            fn powi(self, exponent: i64) -> Self {
                let result = power(self, exponent.unsigned_abs());
                match exponent < 0 {
                    false => result,
                    true if result.re.is_finite() && result.im.is_finite() => Field::recip(result),
                    true => power(Field::recip(self), exponent.unsigned_abs()),
                }
            }
            #[inline(always)]
            fn exponent_slope(self) -> Self {
                Field::log(self)
            }
            fn pow(self, exponent: Self) -> Self {
                if !exponent.truthy() {
                    return Self::one();
                }
                if !self.truthy() {
                    return match exponent.re > 0.0 {
                        true => Self::zero(),
                        false => Complex::new($t::NAN, $t::NAN),
                    };
                }
                let whole = exponent.re;
                if exponent.im == 0.0 && whole == whole.trunc() && whole.abs() <= 100.0 {
                    return self.powi(whole as i64);
                }
                Field::exp(exponent * Field::log(self))
            }
        }

        impl Field for Complex<$t> {
            fn divide(self, other: Self) -> Self {
                let (above, below) = (self.exponent(), other.exponent());
                if above.abs() <= $moderate && below.abs() <= $moderate {
                    return self / other;
                }
                let is_finite = |z: Self| z.re.is_finite() && z.im.is_finite();
                if !is_finite(self) || !is_finite(other) || !other.truthy() {
                    return self.divide_specially(other);
                }
                (self.scaled(-above) / other.scaled(-below)).scaled(above - below)
            }

            /// Smith's method: no intermediate overflow.
            fn recip(self) -> Self {
                let Complex { re: x, im: y } = self;
                let exponent = self.exponent();
                if x.is_infinite() || y.is_infinite() {
                    Complex::new((0.0 as $t).copysign(x), (0.0 as $t).copysign(-y))
                } else if exponent.abs() > $moderate && self.truthy() && !x.is_nan() && !y.is_nan() {
                    Field::recip(self.scaled(-exponent)).scaled(-exponent)
                } else if x.abs() >= y.abs() {
                    let ratio = y / x;
                    let scale = 1.0 / (x + y * ratio);
                    Complex::new(scale, -ratio * scale)
                } else {
                    let ratio = x / y;
                    let scale = 1.0 / (y + x * ratio);
                    Complex::new(ratio * scale, -scale)
                }
            }

            fn sqrt(self) -> Self {
                let Complex { re: x, im: y } = self;
                if x == 0.0 && y == 0.0 {
                    return Complex::new(0.0, y);
                }
                if y.is_infinite() {
                    return Complex::new($t::INFINITY, y);
                }
                if x.is_infinite() {
                    let rest = if y.is_nan() { y } else { 0.0 };
                    return match x > 0.0 {
                        true => Complex::new(x, rest.copysign(y)),
                        false => Complex::new(rest, $t::INFINITY.copysign(y)),
                    };
                }
                // Scaled by a power of 4, so that |z| + |x| neither overflows nor loses digits.
                let big = x.abs().max(y.abs()) > $t::MAX / 4.0;
                let small = x.abs().max(y.abs()) < $t::MIN_POSITIVE * 4.0 / $t::EPSILON;
                let (up, down) = match (big, small) {
                    (true, _) => (0.0625, 4.0),
                    (_, true) => (4.0 / ($t::EPSILON * $t::EPSILON), $t::EPSILON / 2.0),
                    _ => (1.0, 1.0),
                };
                let (x, y) = (x * up, y * up);
                let root = ((x.hypot(y) + x.abs()) * 0.5).sqrt();
                let other = y.abs() / (2.0 * root);
                let (re, im) = if x >= 0.0 { (root, other) } else { (other, root) };
                Complex::new(re * down, (im * down).copysign(y))
            }

            fn exp(self) -> Self {
                let Complex { re: x, im: y } = self;
                let e = x.exp();
                if y == 0.0 {
                    Complex::new(e, y)
                } else if x == $t::NEG_INFINITY && !y.is_finite() {
                    Complex::new(0.0, 0.0)
                } else if x == $t::INFINITY && !y.is_finite() {
                    Complex::new(x, $t::NAN)
                } else if e.is_infinite() && x.is_finite() {
                    // The parts may be finite even if eˣ isn't.
                    let half = (0.5 * x).exp();
                    Complex::new(half * y.cos() * half, half * y.sin() * half)
                } else {
                    Complex::new(e * y.cos(), e * y.sin())
                }
            }

            fn expm1(self) -> Self {
                let Complex { re: x, im: y } = self;
                if y == 0.0 {
                    Complex::new(x.exp_m1(), y)
                } else if x.is_infinite() || x > 1.0 {
                    let e = Field::exp(self);
                    Complex::new(e.re - 1.0, e.im)
                } else {
                    let half = (0.5 * y).sin();
                    Complex::new(x.exp_m1() * y.cos() - 2.0 * half * half, x.exp() * y.sin())
                }
            }

            fn log(self) -> Self {
                let Complex { re: x, im: y } = self;
                let length = x.hypot(y);
                let re = if length > 0.5 && length < 2.0 {
                    // ln |z| near |z| = 1, computed from |z|² − 1.
                    let (long, short) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
                    0.5 * ((long - 1.0) * (long + 1.0) + short * short).ln_1p()
                } else if length.is_infinite() && x.is_finite() && y.is_finite() {
                    (0.5 * x).hypot(0.5 * y).ln() + (2.0 as $t).ln()
                } else {
                    length.ln()
                };
                Complex::new(re, y.atan2(x))
            }

            fn log1p(self) -> Self {
                let Complex { re: x, im: y } = self;
                let re = match x.abs() < 0.5 && y.abs() < 0.5 {
                    true => 0.5 * (x * (x + 2.0) + y * y).ln_1p(),
                    false => Field::log(Complex::new(1.0 + x, y)).re,
                };
                Complex::new(re, y.atan2(1.0 + x))
            }

            fn log2(self) -> Self {
                let log = Field::log(self);
                Complex::new(log.re * std::$t::consts::LOG2_E, log.im * std::$t::consts::LOG2_E)
            }

            fn log10(self) -> Self {
                let log = Field::log(self);
                Complex::new(log.re * std::$t::consts::LOG10_E, log.im * std::$t::consts::LOG10_E)
            }

            fn cos(self) -> Self {
                Field::cosh(times_i(self))
            }
            rotated!(sin = sinh, tan = tanh, asin = asinh, atan = atanh);

            fn acos(self) -> Self {
                let Complex { re: x, im: y } = self;
                if x.is_infinite() || y.is_infinite() {
                    return Complex::new(y.abs().atan2(x), -$t::INFINITY.copysign(y));
                }
                if self.exponent() > $moderate {
                    return Complex::new(y.abs().atan2(x), -(Field::log(self).re + std::$t::consts::LN_2).copysign(y));
                }
                let minus = Field::sqrt(Complex::new(1.0 - x, -y));
                let plus = Field::sqrt(Complex::new(1.0 + x, y));
                Complex::new(2.0 * minus.re.atan2(plus.re), Field::asinh(plus.re * minus.im - plus.im * minus.re))
            }

            fn sinh(self) -> Self {
                let Complex { re: x, im: y } = self;
                if y == 0.0 {
                    Complex::new(x.sinh(), y)
                } else if x == 0.0 {
                    Complex::new(x, y.sin())
                } else if x.is_infinite() && !y.is_finite() {
                    Complex::new(x, $t::NAN)
                } else if x.abs() > $large {
                    // Both sinh and cosh are half of e^|x| here. The parts may be finite even if e^|x| overflows.
                    let e = self.half_exp();
                    Complex::new(e.re * x.signum(), e.im)
                } else {
                    Complex::new(x.sinh() * y.cos(), x.cosh() * y.sin())
                }
            }

            fn cosh(self) -> Self {
                let Complex { re: x, im: y } = self;
                if y == 0.0 {
                    Complex::new(x.cosh(), y.copysign(y.signum() * x.signum()))
                } else if x == 0.0 {
                    Complex::new(y.cos(), x.copysign(x.signum() * y.signum()))
                } else if x.is_infinite() && !y.is_finite() {
                    Complex::new($t::INFINITY, $t::NAN)
                } else if x.abs() > $large {
                    let e = self.half_exp();
                    Complex::new(e.re, e.im * x.signum())
                } else {
                    Complex::new(x.cosh() * y.cos(), x.sinh() * y.sin())
                }
            }

            fn tanh(self) -> Self {
                let Complex { re: x, im: y } = self;
                if y == 0.0 {
                    Complex::new(x.tanh(), y)
                } else if x.is_infinite() {
                    let sign = if y.is_finite() { (y + y).sin() } else { y };
                    Complex::new(x.signum(), (0.0 as $t).copysign(sign))
                } else if x == 0.0 && !y.is_finite() {
                    Complex::new(x, $t::NAN)
                } else if x.abs() > $large {
                    let e = (-x.abs()).exp();
                    Complex::new(x.signum(), 4.0 * y.sin() * y.cos() * e * e)
                } else {
                    let (tan, sinh) = (y.tan(), x.sinh());
                    let (beta, rho) = (1.0 + tan * tan, (1.0 + sinh * sinh).sqrt());
                    let below = 1.0 + beta * sinh * sinh;
                    Complex::new(beta * rho * sinh / below, tan / below)
                }
            }

            fn asinh(self) -> Self {
                let Complex { re: x, im: y } = self;
                if x.is_infinite() || y.is_infinite() {
                    return Complex::new($t::INFINITY.copysign(x), y.atan2(x.abs()));
                }
                if y == 0.0 {
                    return Complex::new(Field::asinh(x), y);
                }
                if self.exponent() > $moderate {
                    return Complex::new((Field::log(self).re + std::$t::consts::LN_2).copysign(x), y.atan2(x.abs()));
                }
                // asin of iz = −y + ix, multiplied by −i.
                let minus = Field::sqrt(Complex::new(1.0 + y, -x));
                let plus = Field::sqrt(Complex::new(1.0 - y, x));
                let re = Field::asinh(minus.re * plus.im - minus.im * plus.re);
                Complex::new(re, y.atan2(minus.re * plus.re - minus.im * plus.im))
            }

            fn acosh(self) -> Self {
                let Complex { re: x, im: y } = self;
                if x.is_infinite() || y.is_infinite() {
                    return Complex::new($t::INFINITY, y.atan2(x));
                }
                if self.exponent() > $moderate {
                    return Complex::new(Field::log(self).re + std::$t::consts::LN_2, y.atan2(x));
                }
                let minus = Field::sqrt(Complex::new(x - 1.0, y));
                let plus = Field::sqrt(Complex::new(x + 1.0, y));
                Complex::new(Field::asinh(minus.re * plus.re + minus.im * plus.im), 2.0 * minus.im.atan2(plus.re))
            }

            fn atanh(self) -> Self {
                let Complex { re: x, im: y } = self;
                let right_angle = std::$t::consts::FRAC_PI_2.copysign(y);
                if x.is_infinite() || y.is_infinite() {
                    let im = if y.is_nan() { y } else { right_angle };
                    return Complex::new((0.0 as $t).copysign(x), im);
                }
                if x == 0.0 && y.is_nan() {
                    return self;
                }
                if x.abs().max(y.abs()) > 1.0 / ($t::EPSILON * $t::EPSILON) {
                    return Complex::new(Field::recip(self).re, right_angle);
                }
                let away = 1.0 - x.abs();
                let distance = away * away + y * y;
                let angle = (2.0 * y).atan2(away * (1.0 + x.abs()) - y * y);
                let re = match distance < $t::MIN_POSITIVE / $t::EPSILON {
                    // Close to ±1, the square of the distance underflows.
                    true => 0.5 * (std::$t::consts::LN_2 - y.abs().ln()),
                    false => 0.25 * (4.0 * x.abs() / distance).ln_1p(),
                };
                Complex::new(re.copysign(x), 0.5 * angle)
            }

            fn sigmoid(self) -> Self {
                // As for real numbers: use the exponential that doesn't overflow.
                if self.re < 0.0 {
                    let e = Field::exp(self);
                    e * Field::recip(e + 1.0)
                } else {
                    Field::recip(Field::exp(-self) + 1.0)
                }
            }
        }
    };
}
complex!(f32, 11.0, 30);
complex!(f64, 22.0, 250);
