use minitensor::prelude::*;

/// In order.
#[custom_op]
pub fn in_order<T: Real>(x: T, y: T) -> (T, T) {
    if x < y { (x, y) } else { (y, x) }
}

fn main() {}
