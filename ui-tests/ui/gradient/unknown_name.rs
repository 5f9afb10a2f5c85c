use minitensor::prelude::*;

/// Doubles.
#[custom_op(backward = |d_out| { let two = 2.0; x: d_uot * twoo })]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
