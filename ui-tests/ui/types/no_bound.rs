use minitensor::prelude::*;

/// Itself.
#[custom_op]
pub fn same<T>(x: T) -> T {
    x
}

fn main() {}
