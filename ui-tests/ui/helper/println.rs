use minitensor::prelude::*;

#[op_fn]
fn helper<T: Float>(x: T) -> T {
    println!("{}", x);
    x
}

fn main() {}
