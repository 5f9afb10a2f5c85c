use minitensor::prelude::*;

/// The bits that differ from those of the element before.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn changed<R: Row>(x: R) -> R {
    x ^ x.shift(1)
}

/// The sum of integers.
#[custom_op]
pub fn total<T: Int>(x: T) -> T {
    x.sum()
}

fn main() {}
