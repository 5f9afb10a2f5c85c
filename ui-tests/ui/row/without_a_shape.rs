use minitensor::prelude::*;

/// Centers every row.
#[custom_op]
pub fn center<R: Row>(x: R) -> R {
    x - x.mean()
}

fn main() {}
