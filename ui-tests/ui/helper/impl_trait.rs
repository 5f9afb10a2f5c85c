use minitensor::prelude::*;

#[op_fn]
fn halved(x: impl Float) -> f64 {
    0.5 * x
}

fn main() {}
