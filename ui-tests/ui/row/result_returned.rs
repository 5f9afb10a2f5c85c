use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn op<R: Row>(x: R) -> Result<R> {
    Ok(x)
}

fn main() {}
