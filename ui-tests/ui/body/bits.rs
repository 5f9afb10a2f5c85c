use minitensor::prelude::*;

/// The bits.
#[custom_op]
pub fn returned<T: Float>(x: T) -> T {
    x.to_bits()
}

/// A number plus bits.
#[custom_op]
pub fn mixed<T: Float>(x: T) -> T {
    let bits = x.to_bits();
    x + bits
}

/// Half of the bits.
#[custom_op]
pub fn half<T: Float>(x: T) -> T {
    T::from_bits(x.to_bits() * 0.5)
}

/// The number with the bits of a number.
#[custom_op]
pub fn of_a_number<T: Float>(x: T) -> T {
    T::from_bits(x)
}

/// A function that bits lack.
#[custom_op]
pub fn root<T: Float>(x: T) -> T {
    T::from_bits(x.to_bits().sqrt())
}

/// The bits of integers.
#[custom_op]
pub fn of_integers<T: Int>(x: T) -> T {
    x.to_bits()
}

/// The sum of the bits of a row.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn of_rows<R: Row>(x: R) -> R {
    R::from_bits(x.to_bits().sum())
}

/// Compares bits and a number.
#[custom_op]
pub fn compared<T: Float>(x: T) -> T::Mask {
    x.to_bits() < x
}

/// Bits in one branch.
#[custom_op]
pub fn branches<T: Float>(x: T) -> T {
    if x > 0.0 { x } else { x.to_bits() }
}

fn main() {}
