use minitensor::prelude::*;

/// The sum of every matrix.
#[custom_op(shape = (x: [.., m, n]) -> [..], program = RealRow::sum)]
pub fn total<T: Float>(x: ArrayView2<T>, out: &mut T) {
    *out = x.iter().fold(T::zero(), |sum, x| sum + *x);
}

fn main() {}
