use minitensor::prelude::*;

#[op_fn]
fn helper<T: Float>(x: T, lo: f64) -> T {
    (x > lo) * x
}

fn main() {}
