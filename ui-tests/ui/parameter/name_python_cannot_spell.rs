use minitensor::prelude::*;

/// Anonymous.
#[custom_op]
pub fn lambda<T: Float>(x: T, from: T) -> T {
    x + from
}

fn main() {}
