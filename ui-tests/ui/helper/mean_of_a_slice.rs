use minitensor::prelude::*;

#[op_fn]
fn helper<T: Float>(x: &[T]) -> T {
    x[0] - x.mean()
}

fn main() {}
