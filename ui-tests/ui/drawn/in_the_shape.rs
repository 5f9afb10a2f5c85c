use minitensor::prelude::*;

/// Random numbers that the clause mentions.
#[custom_op(shape = (x: [.., n], u: [.., n]) -> [.., n])]
pub fn op<R: Row>(x: R, #[uniform] u: R) -> R {
    x + u
}

fn main() {}
