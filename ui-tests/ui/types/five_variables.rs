use minitensor::prelude::*;

/// One of five.
#[custom_op]
pub fn pick<A: Float, B: Float, C: Float, D: Float, E: Float>(a: A, b: B, c: C, d: D, e: E) -> A {
    a
}

fn main() {}
