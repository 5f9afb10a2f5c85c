use minitensor::prelude::*;

/// Not what Rust's floats do.
#[custom_op]
pub fn wrapped<T: Real>(x: T, y: T) -> T {
    let _ = x.signum();
    x.rem_euclid(y)
}

fn main() {}
