use minitensor::prelude::*;

#[custom_op(inplace, where epsilon >= 0.0)]
pub fn lambda<T: Real>(x: T, #[default = 1] from: bool, eps: f64) -> T::Mask {
    while x < eps {}
    if x > 0.5 { true }
}

fn main() {}
