use minitensor::prelude::*;

/// Not a function.
#[custom_op]
pub struct Op {
    x: f64,
}

fn main() {}
