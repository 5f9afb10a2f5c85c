use minitensor::prelude::*;

/// `x` times its position.
#[custom_op]
fn scaled<T: Float>(x: T, #[position] at: T) -> T {
    x * at
}

fn main() {}
