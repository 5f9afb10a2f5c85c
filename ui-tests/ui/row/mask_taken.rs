use minitensor::prelude::*;

/// The sum of what is masked.
#[custom_op(shape = (x: [.., n], mask: [.., n]) -> [..])]
pub fn masked<R: Row>(x: R, mask: R::Mask) -> R {
    (if mask { x } else { 0.0 }).sum()
}

fn main() {}
