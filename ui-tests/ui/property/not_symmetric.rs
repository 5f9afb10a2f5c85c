use minitensor::prelude::*;

/// The distance of `x` and `y`, if `y` is given.
#[custom_op(symmetric)]
pub fn distance<T: Float>(x: T, y: Option<T>) -> T {
    if let Some(y) = y { (x - y).abs() } else { x.abs() }
}

fn main() {}
