use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn literals<T: Float>(x: T) -> T {
    1 / 2 * x
}

/// An op.
#[custom_op]
pub fn attributes<T: Float>(x: T, k: usize) -> T {
    x.powf(1 / k) + x * (k / 2 + 1)
}

/// An op.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn counts<T: Float>(x: &[T]) -> T {
    let mut count = 0;
    for v in x {
        if *v > 0.0 {
            count += 1;
        }
    }
    count / x.len()
}

/// An op.
#[custom_op]
pub fn flag<T: Float>(x: T) -> T {
    if x > 0.0 { x } else { true }
}

fn main() {}
