use minitensor::prelude::*;

#[op_fn]
fn helper<T: Float>(x: T) -> T {
    let mut y = x;
    while y > 1 {
        y = y / 2;
    }
    y
}

fn main() {}
