use minitensor::prelude::*;

/// A sum.
#[custom_op(dtype = (x: T) -> ())]
pub fn add<T: Num>(x: T, y: T) -> T {
    x + y
}

fn main() {}
