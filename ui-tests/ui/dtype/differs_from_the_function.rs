use minitensor::prelude::*;

/// Where the largest element is.
#[custom_op(shape = (x: [.., n]) -> [..], dtype = (x: T) -> i32)]
pub fn argmax<T: Real>(x: &[T], out: &mut i64) {
    *out = x.len() as i64;
}

fn main() {}
