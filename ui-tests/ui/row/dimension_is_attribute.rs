use minitensor::prelude::*;

/// The sum of the first `n` powers of the largest element.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn powers<R: Row>(x: R, n: usize) -> R {
    let mut total: R = 0.0;
    for _ in 0..n {
        total = (total + 1.0) * x.max();
    }
    total
}

fn main() {}
