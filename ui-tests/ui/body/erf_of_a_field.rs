use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Field>(x: T) -> T {
    x.erf()
}

fn main() {}
