use minitensor::prelude::*;

#[op_fn]
fn bounded<T: Float>(x: T, limit: f64) -> T {
    if x > limit {
        limit
    }
    x
}

fn main() {}
