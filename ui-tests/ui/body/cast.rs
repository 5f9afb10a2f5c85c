use minitensor::prelude::*;

/// The whole part.
#[custom_op]
pub fn whole<T: Float>(x: T) -> T {
    let y = x as i64;
    x - y as f64
}

fn main() {}
