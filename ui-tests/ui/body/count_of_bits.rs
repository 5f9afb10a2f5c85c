use minitensor::prelude::*;

/// The bits that are 1.
#[custom_op]
pub fn op<T: Int>(x: T) -> T {
    x.count_ones()
}

fn main() {}
