use minitensor::prelude::*;

#[derive(Clone, Copy)]
pub struct Params {
    scale: f64,
}

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, p: Params) -> T {
    x * p.scale
}

fn main() {}
