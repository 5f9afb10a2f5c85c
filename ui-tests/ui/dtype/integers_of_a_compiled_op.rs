use minitensor::prelude::*;

/// The number of whole steps.
#[custom_op(dtype = (x: T) -> i32, precompiled)]
pub fn steps<T: Float>(x: T) -> T {
    x.floor()
}

/// A sum of numbers of which one is stored as eight bits.
#[custom_op(dtype = (x: T, y: i8) -> T)]
pub fn sum_of<T: Num>(x: T, y: T) -> T {
    x + y
}

fn main() {}
