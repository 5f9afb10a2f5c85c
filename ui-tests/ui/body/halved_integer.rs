use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn halved<T: Int>(x: T) -> T {
    let mut y = x;
    y /= 2;
    y
}

/// An op.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn total<T: Float>(x: &[T]) -> T {
    let total: f64 = x.iter().copied().sum();
    total
}

fn main() {}
