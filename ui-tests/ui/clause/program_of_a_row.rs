use minitensor::prelude::*;

/// The sum of every row.
#[custom_op(shape = (x: [.., n]) -> [..], program = RealRow::sum)]
pub fn total<R: Row>(x: R) -> R {
    x.sum()
}

fn main() {}
