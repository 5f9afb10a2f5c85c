use minitensor::prelude::*;

#[op_fn]
fn helper<T: Real>(x: T) -> T {
    x.sqrt()
}

fn main() {}
