use minitensor::prelude::*;

#[op_fn]
fn bounded<T: Float>(x: T, limit: f64) -> T {
    let mut y = x;
    if y > limit {
        y = limit;
    }
    y
}

fn main() {}
