use minitensor::prelude::*;

/// A row times the positions of its elements.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
fn scaled<R: Row>(x: R, #[position(-1)] at: R) -> R {
    x * at
}

fn main() {}
