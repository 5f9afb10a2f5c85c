use minitensor::prelude::*;

/// A tuple.
#[custom_op]
pub fn tuple<T: Float>(x: T, y: T) -> Complex<T> {
    (x, y)
}

/// A literal.
#[custom_op]
pub fn literal<T: Float>(x: T) -> Complex<T> {
    1i * x
}

/// A dtype as a type.
#[custom_op]
pub fn dtype(z: Complex64) -> Complex64 {
    z * z
}

/// The parts of a number that may be complex.
#[custom_op]
pub fn parts<T: Field>(z: T) -> T {
    z.re() * z.im()
}

/// Polar coordinates.
#[custom_op]
pub fn polar<T: Float>(z: Complex<T>) -> T {
    let (r, angle) = z.to_polar();
    r * angle
}

fn main() {}
