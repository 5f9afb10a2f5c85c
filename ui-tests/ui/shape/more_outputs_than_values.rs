use minitensor::prelude::*;

/// A test.
#[custom_op(shape = (x: [.., n]) -> (lo: [..], hi: [..]))]
pub fn range<R: Row>(x: R) -> R {
    x.min()
}

fn main() {}
