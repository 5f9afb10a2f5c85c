use minitensor::prelude::*;

/// A closure that counts.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn op<R: Row>(x: R) -> R {
    let mut count = 0;
    let mut next = || {
        count += 1;
        f64::from(count)
    };
    R::scan(x, |before, x| before + x * next())
}

fn main() {}
