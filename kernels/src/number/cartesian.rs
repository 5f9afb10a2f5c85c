//! [`Complex`]: a complex number of a body, as two real ones.
//!
//! The functions are compositions of real functions, so a body with complex numbers is a body of real numbers to everything else: its
//! program, its derivatives, its loops. The formulas are those of [`complex`](super::complex) with selections for branches. They avoid
//! cancellation, and overflow where this costs little. They do not have all special cases of C99: a result at an infinity or at a
//! division by 0 may have NaN in both parts. Beside a pole, `atan` and `atanh` may overflow.

mod mixed;
mod rows;

use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

pub use mixed::Mixed;

use crate::number::scalar::{Const, Element, Field, Float, Num, lit};

/// `re + i·im`, over any floats that a body is written in.
///
/// ```
/// use minitensor_kernels::{Num, cartesian::Complex};
///
/// let z = Complex::new(3.0, 4.0);
/// assert_eq!(z.abs(), 5.0);
/// assert_eq!(z * z.conj(), Complex::from(25.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

impl<T: Float> Complex<T> {
    /// `re + i·im`.
    #[inline(always)]
    pub fn new(re: T, im: T) -> Self {
        Complex { re, im }
    }

    /// `i`.
    #[inline(always)]
    pub fn i() -> Self {
        Complex::new(T::zero(), T::one())
    }

    /// `radius · e^(i·angle)`.
    #[inline(always)]
    pub fn from_polar(radius: T, angle: T) -> Self {
        let (sin, cos) = angle.sin_cos();
        Complex::new(radius * cos, radius * sin)
    }

    /// The real part.
    #[inline(always)]
    pub fn re(self) -> T {
        self.re
    }

    /// The imaginary part.
    #[inline(always)]
    pub fn im(self) -> T {
        self.im
    }

    /// `|z|`, without overflow.
    #[inline(always)]
    pub fn abs(self) -> T {
        self.re.hypot(self.im)
    }

    /// The angle in (−π, π].
    #[inline(always)]
    pub fn arg(self) -> T {
        self.im.atan2(self.re)
    }

    /// `|z|²`.
    #[inline(always)]
    pub fn norm_sqr(self) -> T {
        self.re * self.re + self.im * self.im
    }

    /// True if a part is NaN.
    #[inline(always)]
    pub fn isnan(self) -> T::Mask {
        self.re.isnan() | self.im.isnan()
    }

    /// True if a part is infinite.
    #[inline(always)]
    pub fn isinf(self) -> T::Mask {
        self.re.isinf() | self.im.isinf()
    }

    /// True if both parts are finite.
    #[inline(always)]
    pub fn isfinite(self) -> T::Mask {
        self.re.isfinite() & self.im.isfinite()
    }

    #[inline(always)]
    fn scaled(self, by: T) -> Self {
        Complex::new(self.re * by, self.im * by)
    }

    /// `iz`.
    #[inline(always)]
    fn times_i(self) -> Self {
        Complex::new(-self.im, self.re)
    }

    /// `z / i`.
    #[inline(always)]
    fn over_i(self) -> Self {
        Complex::new(self.im, -self.re)
    }
}

impl<T: Float> From<T> for Complex<T> {
    #[inline(always)]
    fn from(re: T) -> Self {
        Complex::new(re, T::zero())
    }
}

/// `length · (cos + i·sin)`, where a sine of 0 stays 0 beside an infinite length.
#[inline(always)]
fn along<T: Float>([cos, sin]: [T; 2], length: [T; 2]) -> Complex<T> {
    let is_none = length[1].isinf() & !sin.truthy();
    Complex::new(length[0] * cos, T::select(is_none, sin, length[1] * sin))
}

macro_rules! operators {
    ($($operator:ident $method:ident $assign:ident $assigned:ident |$a:ident, $b:ident| $complex:expr, $real:expr;)*) => {$(
        impl<T: Float> $operator for Complex<T> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $complex
            }
        }
        impl<T: Float> $operator<T> for Complex<T> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: T) -> Self {
                let ($a, $b) = (self, other);
                $real
            }
        }
        impl<T: Float> $assign for Complex<T> {
            #[inline(always)]
            fn $assigned(&mut self, other: Self) {
                *self = self.$method(other);
            }
        }
        impl<T: Float> $assign<T> for Complex<T> {
            #[inline(always)]
            fn $assigned(&mut self, other: T) {
                *self = self.$method(other);
            }
        }
    )*};
}
operators! {
    Add add AddAssign add_assign |a, b| Complex::new(a.re + b.re, a.im + b.im), Complex::new(a.re + b, a.im);
    Sub sub SubAssign sub_assign |a, b| Complex::new(a.re - b.re, a.im - b.im), Complex::new(a.re - b, a.im);
    Mul mul MulAssign mul_assign |a, b|
        Complex::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re), a.scaled(b);
    Div div DivAssign div_assign |a, b| a.divide(b), Complex::new(a.re.divide(b), a.im.divide(b));
}

impl<T: Float> Neg for Complex<T> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Complex::new(-self.re, -self.im)
    }
}

impl<T: Float> Element for Complex<T> {
    type Mask = T::Mask;
    #[inline(always)]
    fn constant(value: Const) -> Self {
        Complex::from(T::constant(value))
    }
    #[inline(always)]
    fn equal(self, other: Self) -> T::Mask {
        self.re.equal(other.re) & self.im.equal(other.im)
    }
    #[inline(always)]
    fn truthy(self) -> T::Mask {
        self.re.truthy() | self.im.truthy()
    }
    #[inline(always)]
    fn select(mask: T::Mask, a: Self, b: Self) -> Self {
        Complex::new(T::select(mask, a.re, b.re), T::select(mask, a.im, b.im))
    }
}

/// `z` to a power, by squaring.
#[inline(always)]
fn power<T: Float>(z: Complex<T>, exponent: u64) -> Complex<T> {
    let (mut result, mut power, mut rest) = (None, z, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result = Some(result.map_or(power, |result: Complex<T>| result * power));
        }
        rest >>= 1;
        if rest > 0 {
            power = power * power;
        }
    }
    result.unwrap_or_else(Complex::one)
}

impl<T: Float> Num for Complex<T> {
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
        if exponent >= 0 {
            return result;
        }
        let is_finite = result.re.isfinite() & result.im.isfinite();
        Self::select(is_finite, result.recip(), power(self.recip(), exponent.unsigned_abs()))
    }
    /// `e^(w ln z)`; `0⁰ = 1`, and 0 to a power with a positive real part is 0.
    #[inline(always)]
    fn pow(self, exponent: Self) -> Self {
        let undefined = Complex::new(lit(f64::NAN), lit(f64::NAN));
        let positive = Self::select(exponent.equal(Self::one()), self, Self::zero());
        let power = Self::select(T::zero().less(exponent.re), positive, undefined);
        let at_zero = Self::select(exponent.truthy(), power, Self::one());
        let is_zero = !self.truthy();
        let base = Self::select(is_zero, Self::one(), self);
        Self::select(is_zero, at_zero, (exponent * base.log()).exp())
    }
    #[inline(always)]
    fn exponent_slope(self) -> Self {
        self.log()
    }
    #[inline(always)]
    fn detach(self) -> Self {
        Complex::new(self.re.detach(), self.im.detach())
    }
}

impl<T: Float> Field for Complex<T> {
    /// Smith's method, which divides by the larger part of the divisor first.
    #[inline(always)]
    fn divide(self, other: Self) -> Self {
        let is_steep = other.re.abs().less(other.im.abs());
        let large = T::select(is_steep, other.im, other.re);
        let small = T::select(is_steep, other.re, other.im);
        let (p, q) = (T::select(is_steep, self.im, self.re), T::select(is_steep, self.re, self.im));
        let ratio = small.divide(large);
        let below = large + small * ratio;
        let (re, im) = ((p + q * ratio).divide(below), (q - p * ratio).divide(below));
        Complex::new(re, T::select(is_steep, -im, im))
    }
    #[inline(always)]
    fn recip(self) -> Self {
        Self::one().divide(self)
    }
    /// Kahan's formula, with the branch cut along the negative real numbers.
    #[inline(always)]
    fn sqrt(self) -> Self {
        let half: T = lit(0.5);
        let (is_left, is_below) = (self.re.less(T::zero()), self.im.signbit());
        // The absolute value has the derivative 0 at 0, selections have that of the side.
        let right = T::select(is_left, -self.re, self.re);
        let root = (half * self.abs() + half * right).sqrt();
        let is_zero = !root.truthy();
        let other = T::select(is_zero, T::zero(), half * self.im.divide(root));
        Complex::new(
            T::select(is_left, T::select(is_below, -other, other), root),
            T::select(is_left, T::select(is_below, -root, root), other),
        )
    }
    #[inline(always)]
    fn exp(self) -> Self {
        let (sin, cos) = self.im.sin_cos();
        let length = self.re.exp();
        along([cos, sin], [length, length])
    }
    #[inline(always)]
    fn expm1(self) -> Self {
        let half = (lit::<T>(0.5) * self.im).sin();
        let (sin, cos) = self.im.sin_cos();
        let Complex { re, im } = along([cos, sin], [self.re.expm1(), self.re.exp()]);
        Complex::new(re - lit::<T>(2.0) * half * half, im)
    }
    #[inline(always)]
    fn log(self) -> Self {
        let length = self.abs();
        // ln |z| near |z| = 1, computed from |z|² − 1.
        let (x, y) = (self.re, self.im);
        let is_steep = x.abs().less(y.abs());
        let (long, short) = (T::select(is_steep, y, x), T::select(is_steep, x, y));
        let near = lit::<T>(0.5) * ((long - T::one()) * (long + T::one()) + short * short).log1p();
        let is_near = lit::<T>(0.5).less(length) & length.less(lit(2.0));
        Complex::new(T::select(is_near, near, length.log()), self.arg())
    }
    #[inline(always)]
    fn log1p(self) -> Self {
        let (x, y) = (self.re, self.im);
        let is_small = x.abs().less(lit(0.5)) & y.abs().less(lit(0.5));
        let small = lit::<T>(0.5) * (x * (x + lit(2.0)) + y * y).log1p();
        let log = Complex::new(T::one() + x, y).log();
        Complex::new(T::select(is_small, small, log.re), log.im)
    }
    #[inline(always)]
    fn log2(self) -> Self {
        self.log().scaled(lit(std::f64::consts::LOG2_E))
    }
    #[inline(always)]
    fn log10(self) -> Self {
        self.log().scaled(lit(std::f64::consts::LOG10_E))
    }
    #[inline(always)]
    fn sin(self) -> Self {
        self.times_i().sinh().over_i()
    }
    #[inline(always)]
    fn cos(self) -> Self {
        self.times_i().cosh()
    }
    #[inline(always)]
    fn tan(self) -> Self {
        self.times_i().tanh().over_i()
    }
    #[inline(always)]
    fn asin(self) -> Self {
        self.times_i().asinh().over_i()
    }
    #[inline(always)]
    fn acos(self) -> Self {
        // The sign of a zero selects the side of the cut.
        let (minus, plus) = (T::one().minus(self).sqrt(), (self + T::one()).sqrt());
        Complex::new(lit::<T>(2.0) * minus.re.atan2(plus.re), (plus.re * minus.im - plus.im * minus.re).asinh())
    }
    #[inline(always)]
    fn atan(self) -> Self {
        self.times_i().atanh().over_i()
    }
    #[inline(always)]
    fn sinh(self) -> Self {
        let (sin, cos) = self.im.sin_cos();
        along([cos, sin], [self.re.sinh(), self.re.cosh()])
    }
    #[inline(always)]
    fn cosh(self) -> Self {
        let (sin, cos) = self.im.sin_cos();
        along([cos, sin], [self.re.cosh(), self.re.sinh()])
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        let (x, y) = (self.re, self.im);
        // Beyond this, e⁻²ˣ is negligible compared with 1.
        let is_far = lit::<T>(22.0).less(x.abs());
        let near = T::select(is_far, T::zero(), x);
        let (sinh, tan) = (near.sinh(), y.tan());
        let (beta, rho) = (T::one() + tan * tan, (T::one() + sinh * sinh).sqrt());
        let below = T::one() + beta * sinh * sinh;
        let (sin, cos) = y.sin_cos();
        let far = lit::<T>(4.0) * sin * cos * (lit::<T>(-2.0) * x.abs()).exp();
        Complex::new(
            T::select(is_far, x.sign(), (beta * rho * sinh).divide(below)),
            T::select(is_far, far, tan.divide(below)),
        )
    }
    #[inline(always)]
    fn asinh(self) -> Self {
        let (x, y) = (self.re, self.im);
        let (minus, plus) = (Complex::new(T::one() + y, -x).sqrt(), Complex::new(T::one() - y, x).sqrt());
        Complex::new(
            (minus.re * plus.im - minus.im * plus.re).asinh(),
            y.atan2(minus.re * plus.re - minus.im * plus.im),
        )
    }
    #[inline(always)]
    fn acosh(self) -> Self {
        let (minus, plus) = ((self - T::one()).sqrt(), (self + T::one()).sqrt());
        Complex::new((minus.re * plus.re + minus.im * plus.im).asinh(), lit::<T>(2.0) * minus.im.atan2(plus.re))
    }
    #[inline(always)]
    fn atanh(self) -> Self {
        let (x, y) = (self.re, self.im);
        let is_left = x.less(T::zero());
        let right = T::select(is_left, -x, x);
        let distance = (T::one() - right) * (T::one() - right) + y * y;
        let re = lit::<T>(0.25) * (lit::<T>(4.0) * right).divide(distance).log1p();
        let angle = (lit::<T>(2.0) * y).atan2((T::one() - right) * (T::one() + right) - y * y);
        Complex::new(T::select(is_left, -re, re), lit::<T>(0.5) * angle)
    }
    #[inline(always)]
    fn sigmoid(self) -> Self {
        // As for real numbers: the exponential that does not overflow.
        let is_left = self.re.less(T::zero());
        let e = Self::select(is_left, self, -self).exp();
        let rest = (e + T::one()).recip();
        Self::select(is_left, e * rest, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::dual::Dual;
    use num_complex::Complex as Machine;

    type Function = (&'static str, fn(Complex<f64>) -> Complex<f64>, fn(Machine<f64>) -> Machine<f64>);

    macro_rules! functions {
        ($($name:ident),*) => { [$((stringify!($name), |z| Field::$name(z), |z| Field::$name(z))),*] };
    }

    #[test]
    fn functions_agree_with_those_of_machine_numbers() {
        let functions: [Function; 21] = functions!(
            sqrt, exp, expm1, log, log1p, log2, log10, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh,
            atanh, sigmoid, recip
        );
        let parts = [-30.0, -2.5, -1.0, -0.3, -1e-9, 0.0, 1e-5, 0.7, 1.0, 3.0, 25.0];
        for (name, ours, machine) in functions {
            for x in parts {
                for y in parts {
                    let (got, want) = (ours(Complex::new(x, y)), machine(Machine::new(x, y)));
                    if !want.re.is_finite() || !want.im.is_finite() {
                        continue;
                    }
                    let error = (got.re - want.re).hypot(got.im - want.im);
                    let limit = 1e-14 * want.re.hypot(want.im).max(1e-300);
                    assert!(error <= limit, "{name}({x} + {y}i) = {got:?}, expected {want:?}");
                }
            }
        }
    }

    #[test]
    fn derivatives_are_right_beside_branch_cuts_and_on_both_axes() {
        type Number = Dual<f64>;
        type Function = (&'static str, fn(Complex<Number>) -> Complex<Number>, fn(Machine<f64>) -> Machine<f64>);
        let functions: [Function; 18] = functions!(
            sqrt, exp, expm1, log, log1p, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh,
            sigmoid
        );
        let mut compared = 0;
        for (name, ours, machine) in functions {
            for (x, y) in
                [-4.0_f64, -1.5, 0.0, 0.5, 2.0].into_iter().flat_map(|x| [0.0_f64, -0.0, 2.0, -0.7].map(|y| (x, y)))
            {
                let f = |x: f64, y: f64| machine(Machine::new(x, y));
                let by_re = |h: f64| (f(x + h, y) - f(x - h, y)) / (2.0 * h);
                // Within the side of a cut that the sign of 0 selects.
                let by_im = |h: f64| {
                    let h = if y.is_sign_negative() { -h } else { h };
                    (f(x, y) * -3.0 + f(x, y + h) * 4.0 - f(x, y + 2.0 * h)) / (2.0 * h)
                };
                let [re, im] = [(1.0, 0.0), (0.0, 1.0)].map(|(a, b)| {
                    let z = Complex::new(Dual { value: x, tangent: a }, Dual { value: y, tangent: b });
                    let d = ours(z);
                    Machine::new(d.re.tangent, d.im.tangent)
                });
                for (got, want, coarse) in [(re, by_re(1e-4), by_re(2e-4)), (im, by_im(1e-4), by_im(2e-4))] {
                    // At singular points, differences depend on their step.
                    let is_regular = (want - coarse).norm() < 1e-3 * want.norm();
                    if !is_regular {
                        continue;
                    }
                    compared += 1;
                    let error = (got - want).norm();
                    assert!(error <= 1e-4 * (1.0 + want.norm()), "{name}({x} + {y}i)': {got}, expected {want}");
                }
            }
        }
        assert!(compared > 600, "{compared}");
        let at_zero = |w: f64| {
            Complex::from(Dual { value: 0.0, tangent: 1.0 }).pow(Complex::from(Dual { value: w, tangent: 0.0 }))
        };
        assert_eq!((at_zero(1.0).re.tangent, at_zero(2.0).re.tangent), (1.0, 0.0));
    }

    #[test]
    fn operators_agree_with_those_of_machine_numbers() {
        let numbers: [(f64, f64); 5] = [(1.5, -2.0), (-3.0, 0.25), (0.0, 4.0), (1e200, 1e200), (-1e-200, 3e-200)];
        for a in numbers {
            for b in numbers {
                let (z, w) = (Complex::new(a.0, a.1), Complex::new(b.0, b.1));
                let (m, n) = (Machine::new(a.0, a.1), Machine::new(b.0, b.1));
                for (got, want) in [(z / w, Field::divide(m, n)), (z + w, m + n), (z - w, m - n), (z * w, m * n)] {
                    if want.re.is_finite() && want.im.is_finite() {
                        let error = (got.re - want.re).hypot(got.im - want.im);
                        assert!(error <= 1e-15 * want.re.hypot(want.im), "{z:?} {w:?}: {got:?}, expected {want:?}");
                    }
                }
                assert_eq!(a.0.divided(w), Complex::from(a.0) / w);
                assert_eq!(a.0.minus(w), Complex::from(a.0) - w);
                assert_eq!(z / b.1, Complex::new(a.0 / b.1, a.1 / b.1));
            }
        }
        let z = Complex::new(0.5, -1.5);
        assert_eq!(z.powi(3), z * z * z);
        assert!((z.pow(Complex::from(3.0)) - z.powi(3)).abs() < 1e-14);
        assert_eq!(Complex::new(0.0, 0.0).pow(z), Complex::from(0.0));
        assert!(Complex::new(0.0_f64, 0.0).pow(-z).re.is_nan());
        assert_eq!(Complex::new(1000.0, 0.0).exp().im, 0.0);
        assert_eq!(Complex::new(1000.0, 0.0).cosh().im, 0.0);
        assert_eq!(Complex::new(1000.0, 0.0).sinh().im, 0.0);
        assert_eq!(z.powi(-2), (z * z).recip());
        let large = Complex::new(1e200, -1e200);
        assert_eq!((large.powi(-2).re, large.powi(-3).abs()), (0.0, 0.0));
    }
}
