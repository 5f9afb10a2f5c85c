use minitensor::prelude::*;

/// A line.
#[custom_op(backward = |d_out| { x: d_out * slope, slop: d_out * x, slope: none, shift: d_out })]
pub fn line<T: Float>(x: T, slope: T, shift: f64) -> T {
    slope * x + shift
}

fn main() {}
