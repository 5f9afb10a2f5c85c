use minitensor::prelude::*;

/// An element for every position.
#[custom_op(shape = (x: [.., n], at: [.., n]) -> [.., n])]
pub fn pick<R: Row>(x: R, at: R::Index) -> R {
    x.at(at)
}

fn main() {}
