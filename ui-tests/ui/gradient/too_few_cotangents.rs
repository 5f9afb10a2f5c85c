use minitensor::prelude::*;

/// Both.
#[custom_op(backward = |d_sin| { x: d_sin })]
pub fn sin_cos<T: Float>(x: T) -> (T, T) {
    (x.sin(), x.cos())
}

fn main() {}
