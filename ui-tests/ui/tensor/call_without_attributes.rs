use minitensor::prelude::*;

/// `by x`.
#[custom_op]
pub fn scaled<T: Float>(x: T, #[default = 2.0] by: f64) -> T {
    by * x
}

/// An op.
#[custom_op]
pub fn op(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    scaled::call(x)
}

fn main() {}
