use minitensor::prelude::*;

/// The extremes of every row.
#[custom_op(shape = (x: [.., n]) -> [..], backward = none)]
pub fn extremes<T: Real>(x: &[T], low: &mut T, high: &mut T) {
    (*low, *high) = (x[0], x[0]);
}

fn main() {}
