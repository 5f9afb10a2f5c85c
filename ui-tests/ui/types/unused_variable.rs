use minitensor::prelude::*;

/// Itself.
#[custom_op]
pub fn same<T: Float, U: Int>(x: T) -> T {
    x
}

fn main() {}
