use minitensor::prelude::*;

#[op_fn]
fn helper<T: Float>(x: T) -> T {
    x.sum()
}

fn main() {}
