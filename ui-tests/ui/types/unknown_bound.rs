use minitensor::prelude::*;

/// Itself.
#[custom_op]
pub fn same<T: Clone>(x: T) -> T {
    x
}

fn main() {}
