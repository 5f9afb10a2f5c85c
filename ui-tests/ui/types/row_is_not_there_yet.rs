use minitensor::prelude::*;

/// Centers every row.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn center<R: Row>(x: R) -> R {
    x - x.mean()
}

fn main() {}
