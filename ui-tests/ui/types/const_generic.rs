use minitensor::prelude::*;

/// Powers.
#[custom_op]
pub fn power<T: Float, const N: usize>(x: T) -> T {
    x.powi(N as i64)
}

fn main() {}
