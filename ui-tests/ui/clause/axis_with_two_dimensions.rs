use minitensor::prelude::*;

/// The trace.
#[custom_op(shape = (x: [.., n, n]) -> [..], axis = -1, backward = none)]
pub fn trace<T: Num>(x: ArrayView2<T>, out: &mut T) {
    *out = x.diag().iter().fold(T::zero(), |a, b| a + *b);
}

fn main() {}
