use minitensor::prelude::*;

#[op_fn]
struct Pair<T> {
    a: T,
    b: T,
}

fn main() {}
