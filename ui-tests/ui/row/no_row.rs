use minitensor::prelude::*;

/// Of numbers only.
#[custom_op(shape = (x: [..], y: [..]) -> [..])]
pub fn both<R: Row>(x: R, y: R) -> R {
    x + y
}

fn main() {}
