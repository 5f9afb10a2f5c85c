use minitensor::prelude::*;

/// A test.
#[custom_op(jvp = |dx, dm| { out: if m { dx } else { dm } })]
pub fn op<T: Float>(x: T, m: T::Mask) -> T {
    if m { x } else { 0.0 }
}

fn main() {}
