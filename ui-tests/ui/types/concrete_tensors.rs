use minitensor::prelude::*;

/// Adds.
#[custom_op]
pub fn add(x: f32, y: f32) -> f32 {
    x + y
}

fn main() {}
