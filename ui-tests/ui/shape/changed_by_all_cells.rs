use minitensor::prelude::*;

/// Adds every row to `total`.
#[custom_op(shape = (total: [n], x: [.., n]) -> ())]
pub fn accumulate<T: Num>(total: &mut [T], x: &[T]) {
    total.iter_mut().zip(x).for_each(|(total, x)| *total = *total + *x);
}

fn main() {}
