use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [..], backward = none)]
pub fn op<T: Num>(x: &[T], out: &mut T) {
    *out = x[x[0] as usize];
}

fn main() {}
