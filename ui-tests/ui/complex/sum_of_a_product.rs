use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (z: [.., n], w: [.., n]) -> [.., n])]
pub fn op<R: Row>(z: Complex<R>, w: Complex<R>) -> R {
    let y = (z * w.conj()).cummax();
    y.re()
}

fn main() {}
