use minitensor::prelude::*;

#[op_fn(shape = (x: [.., n]) -> [..])]
fn total<R: Row>(x: R) -> R {
    x.sum()
}

fn main() {}
