use minitensor::prelude::*;

/// The mean of each row.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn average<R: IntRow>(x: R) -> R {
    x.mean()
}

/// The scaled row.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn scaled<R: IntRow>(x: R) -> R {
    x / x.sum()
}

/// Half of the row.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn half<R: IntRow>(x: R) -> R {
    x * 0.5
}

/// The exponentials.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn exponentials<R: IntRow>(x: R) -> R {
    x.exp()
}

fn main() {}
