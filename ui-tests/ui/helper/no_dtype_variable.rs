use minitensor::prelude::*;

#[op_fn]
fn halved(x: f64) -> f64 {
    0.5 * x
}

fn main() {}
