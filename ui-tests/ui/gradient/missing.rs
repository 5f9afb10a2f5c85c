use minitensor::prelude::*;

/// A line.
#[custom_op(backward = |d_out| { x: d_out * slope })]
pub fn line<T: Float>(x: T, slope: T, shift: T) -> T {
    slope * x + shift
}

fn main() {}
