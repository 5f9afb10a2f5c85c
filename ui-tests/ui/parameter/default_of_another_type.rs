use minitensor::prelude::*;

/// Rounds.
#[custom_op]
pub fn rounded<T: Float>(
    x: T,
    #[default = 1.5] digits: i64,
    #[default = -1] count: usize,
    #[default = "up"] up: bool,
) -> T {
    x.round()
}

fn main() {}
