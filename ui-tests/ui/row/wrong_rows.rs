use minitensor::prelude::*;

/// Two rows returned as one.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn two<R: Row>(x: R) -> R {
    R::scan((x, x), |(a, b), (x, y)| (a + x, b * y))
}

/// A tuple of one row.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn one<R: Row>(x: R) -> R {
    R::scan((x,), |(a,), (x,)| (a + x,))
}

/// A mask.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn mask<R: Row>(x: R) -> R::Mask {
    R::scan(x > 0.0, |a, b| a || b)
}

/// A row of complex numbers.
#[custom_op(shape = (z: [.., n]) -> [.., n])]
pub fn complex<R: Row>(z: Complex<R>) -> Complex<R> {
    R::scan(z, |a, b| a * b)
}

/// The same by the type.
#[custom_op(shape = (z: [.., n]) -> [.., n])]
pub fn of_complex<R: Row>(z: Complex<R>) -> Complex<R> {
    Complex::scan(z, |a, b| a * b)
}

/// An argument too many.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn sorted<R: Row>(x: R) -> R {
    x.sort(true)
}

/// A row as a position.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn read<R: Row>(x: R) -> R {
    let k = 2.0 * x.position();
    x.at(k) + x.at(x.argsort()) + x.at(x.count() - 1.0)
}

fn main() {}
