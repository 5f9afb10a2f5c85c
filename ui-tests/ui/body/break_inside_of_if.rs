use minitensor::prelude::*;

/// Counts.
#[custom_op]
pub fn count<T: Float>(x: T) -> T {
    let mut n = x;
    for _ in 0..3 {
        n = if n > 1.0 { break } else { n * 2.0 };
    }
    n
}

fn main() {}
