use minitensor::prelude::*;

/// A sum.
#[custom_op(shape = (x: [.., n]) -> [..], dtype = (x: T) -> (), backward = none)]
pub fn total<T: Num>(x: &[T], out: &mut T) {
    *out = x.iter().fold(T::zero(), |a, b| a + *b);
}

fn main() {}
