use minitensor::prelude::*;

/// The sum.
#[custom_op(shape = (x: [.., n]) -> [..], axis = -1)]
pub fn total<T: Float>(x: Columns<T>, out: &mut [T]) {
    minitensor::kernels::columns::sum(x, out);
}

fn main() {}
