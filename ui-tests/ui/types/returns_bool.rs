use minitensor::prelude::*;

/// Whether both are positive.
#[custom_op]
pub fn both_positive<T: Real>(x: T, y: T) -> bool {
    x > 0 && y > 0
}

fn main() {}
