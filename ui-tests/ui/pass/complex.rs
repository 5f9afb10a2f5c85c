//! Complex and real numbers in one body.

use minitensor::prelude::*;

/// The impedance of a resistor and a capacitor in series, and its absolute value.
#[custom_op(dtype = (resistance: T, capacity: T) -> (impedance: Complex<T>, size: T))]
pub fn impedance<T: Float>(resistance: T, capacity: T, #[default = 1.0] omega: f64) -> (Complex<T>, T) {
    let z = resistance + 1.0 / (Complex::i() * omega * capacity);
    (z, z.abs())
}

/// The larger of two numbers by absolute value, or a third one.
#[custom_op]
pub fn larger<T: Float>(z: Complex<T>, w: Complex<T>, mask: T::Mask, other: Option<Complex<T>>) -> (Complex<T>, T::Mask) {
    let mut result: Complex<T> = 0.0;
    let is_larger = z.norm_sqr() > w.norm_sqr();
    if is_larger && z != 0.0 {
        result = z;
    } else if mask {
        result = 2.0 * w;
    }
    for _ in 0..2 {
        result *= 1.5;
        result = result / 1.5;
    }
    let result = other.map_or(result, |other| result + other.conj());
    (-result, is_larger)
}

/// Complex numbers in a body of real ones.
#[custom_op]
pub fn squared<T: Float>(x: T, y: T) -> T {
    let z = Complex::new(x, y);
    let w = 3.0 * z * z - x * z;
    (1.0 - w).re()
}

/// Sums over rows of complex numbers.
#[custom_op(shape = (z: [.., n]) -> (sum: [..], rest: [.., n]))]
pub fn summed<R: Row>(z: Complex<R>) -> (Complex<R>, Complex<R>) {
    ((z * z.conj()).sum(), z.cumsum() - z.mean() + z.shift(1))
}

/// Lists of complex numbers.
#[custom_op]
pub fn listed<T: Float>(x: T) -> T {
    let pair: [Complex<T>; 2] = [Complex::new(x, 1.0), Complex::i()];
    let same = [Complex::from(x); 3];
    let many = vec![Complex::from(x), Complex::new(0.0, 1.0)];
    let mut sum: Complex<T> = 0.0;
    for z in many {
        sum += z * 2.0;
    }
    (pair[0] * same[1] + sum * pair[1] + x * sum).re()
}

fn main() {
    let (z, size) = impedance(3.0_f32, 0.25, 1.0);
    assert_eq!((z.re, z.im(), size), (3.0, -4.0, 5.0));
    let (z, w) = (Complex::new(1.0, 2.0), Complex::new(0.5, 0.5));
    assert_eq!(larger(z, w, false, None), (-z, true));
    assert_eq!(larger(w, z, true, Some(z)), (Complex::new(-3.0, -2.0), false));
    assert_eq!(larger(w, z, false, None), (Complex::new(0.0, 0.0), false));
    assert_eq!(squared(2.0, 1.0), 1.0 - (9.0 - 4.0));
    assert_eq!(summed::op().outputs.len(), 2);
    assert_eq!(listed(3.0), 9.0 - 2.0 + 18.0);
}
