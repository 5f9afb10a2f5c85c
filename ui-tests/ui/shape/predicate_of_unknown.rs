use minitensor::prelude::*;

/// Every `step`-th element.
#[custom_op(shape = (x: [.., n]) -> [.., n / step] where steps > 0, backward = none)]
pub fn every<T: Num>(x: &[T], step: usize, out: &mut [T]) {
    out[0] = x[0];
}

fn main() {}
