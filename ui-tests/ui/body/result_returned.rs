use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> Result<T> {
    Ok(x + 1.0)
}

fn main() {}
