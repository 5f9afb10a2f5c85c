use minitensor::prelude::*;

/// A position is a number until it becomes an index.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn first_largest<R: Row>(x: R) -> R::Index {
    x.argmax()
}

fn main() {}
