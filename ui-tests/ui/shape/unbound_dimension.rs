use minitensor::prelude::*;

/// Pads every row.
#[custom_op(shape = (x: [.., length]) -> [.., lenght + 2], backward = none)]
pub fn pad<T: Num>(x: &[T], out: &mut [T]) {
    out[0] = x[0];
}

fn main() {}
