use minitensor::prelude::*;

/// The sum of every row.
#[custom_op(shape = (x: [.., n]) -> [..], axis = last, backward = none)]
pub fn total<T: Num>(x: &[T], out: &mut T) {
    *out = x.iter().fold(T::zero(), |a, b| a + *b);
}

fn main() {}
