use minitensor::prelude::*;

/// An op.
#[custom_op(dtype = (x: T) -> dtype)]
pub fn op<T: Float>(x: T, dtype: DType) -> T {
    x
}

fn main() {}
