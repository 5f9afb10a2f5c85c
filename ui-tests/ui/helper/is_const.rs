use minitensor::prelude::*;

#[op_fn]
const fn halved<T: Float>(x: T) -> T {
    0.5 * x
}

fn main() {}
