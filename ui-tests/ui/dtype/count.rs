use minitensor::prelude::*;

/// Both.
#[custom_op(dtype = (x: T) -> (T, T))]
pub fn both<T: Float>(x: T) -> T {
    x
}

fn main() {}
