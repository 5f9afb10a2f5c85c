use minitensor::prelude::*;

/// The element if the row is kept.
#[custom_op(shape = (x: [.., n], kept: [..]) -> [.., n])]
pub fn kept<R: Row>(x: R, kept: R::Mask) -> R {
    if kept { x } else { 0.0 }
}

fn main() {}
