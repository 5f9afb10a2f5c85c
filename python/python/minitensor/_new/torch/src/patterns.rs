//! The forms of op that PyTorch's custom ops have, each with the fewest lines.

use minitensor_plugin_sdk::prelude::*;

/// `input · scalar_arg`.
#[custom_op(name = "my_ops::my_op")]
pub fn my_op<T: Float>(input: T, scalar_arg: f64) -> T {
    input * scalar_arg
}

/// Several outputs: sine and cosine.
#[custom_op(name = "my_ops::my_multi_out", dtype = (input: T) -> (sine: T, cosine: T))]
pub fn my_multi_out<T: Float>(input: T) -> (T, T) {
    (input.sin(), input.cos())
}

/// Changes its argument in place: adds `amount`.
#[custom_op(name = "my_ops::my_inplace")]
pub fn my_inplace<T: Float>(input: &mut T, #[default = 1.0] amount: f64) {
    *input = *input + amount;
}

/// An optional argument: multiplies by `scale` if it is given.
#[custom_op(name = "my_ops::my_optional")]
pub fn my_optional<T: Float>(input: T, scale: Option<T>) -> T {
    match scale {
        Some(scale) => input * scale,
        None => input,
    }
}
