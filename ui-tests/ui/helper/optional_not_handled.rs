use minitensor::prelude::*;

#[op_fn]
fn helper<T: Float>(x: T, scale: Option<f64>) -> T {
    x * scale
}

fn main() {}
