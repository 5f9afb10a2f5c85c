use minitensor::prelude::*;

#[custom_op(shapes = [n], since = 1, since = 2, nmae = "x")]
pub fn double<T: Float>(x: T, by: f32, mode: String) -> T {
    x + by
}

fn main() {}
