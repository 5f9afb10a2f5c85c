use minitensor::prelude::*;

/// Whether it is zero.
#[custom_op]
pub fn is_zero<T: Int>(x: T) -> T {
    match x {
        0 => 1,
        _ => 0,
    }
}

fn main() {}
