use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    let y = Some(x)?;
    y + 1.0
}

fn main() {}
