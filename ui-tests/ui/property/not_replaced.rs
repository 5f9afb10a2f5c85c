use minitensor::prelude::*;

/// `x`, scaled.
#[custom_op(replaces = x)]
pub fn scaled<T: Float>(x: T) -> T {
    x
}

/// `ln(softplus(x)) · scale`.
#[custom_op(replaces = log(softplus(x)))]
pub fn log_softplus<T: Float>(x: T, scale: f64) -> T {
    x.softplus().log() * scale
}

/// The mean of the squares.
#[custom_op(shape = (x: [.., n]) -> [..], replaces = sum(x * x, -1) / x.shape[0])]
pub fn mean_square<R: Row>(x: R) -> R {
    (x * x).mean()
}

fn main() {}
