use minitensor::prelude::*;

fn of_row<R: Row>(x: R) -> R {
    x / x.sum()
}

/// Divides every row by its sum.
#[custom_op(shape = (x: [.., n]) -> (), program = of_row)]
pub fn normalize<T: Float>(x: &mut [T]) {
    let total = x.iter().fold(T::zero(), |total, x| total + *x);
    x.iter_mut().for_each(|x| *x = *x / total);
}

fn main() {}
