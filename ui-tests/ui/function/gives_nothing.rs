use minitensor::prelude::*;

/// Nothing.
#[custom_op]
pub fn nothing<T: Float>(x: T) {}

/// Nothing either.
#[custom_op(shape = (x: [.., n]) -> ())]
pub fn silent<T: Float>(x: &[T]) {}

fn main() {}
