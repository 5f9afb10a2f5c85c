//! `opcheck` of written gradients of ops with complex numbers and detached values.

use minitensor::prelude::*;
use minitensor::testing::{Sample, opcheck};
use minitensor_ops as _;

/// The parts rounded, with the gradient of `z`.
#[op_fn]
fn rounded<T: Float>(z: Complex<T>) -> Complex<T> {
    z + (Complex::new(z.re().round(), z.im().round()) - z).detach()
}

/// Its gradient.
#[custom_op(name = "opcheck_complex::right", backward = |d| { z: d })]
pub fn right<T: Float>(z: Complex<T>) -> Complex<T> {
    rounded(z)
}

/// Half of its gradient.
#[custom_op(name = "opcheck_complex::wrong", backward = |d| { z: 0.5 * d })]
pub fn wrong<T: Float>(z: Complex<T>) -> Complex<T> {
    rounded(z)
}

/// The square with a gradient that is not conjugated.
#[custom_op(name = "opcheck_complex::not_conjugated", backward = |d| { z: 2 * z * d })]
pub fn not_conjugated<T: Float>(z: Complex<T>) -> Complex<T> {
    z * z
}

/// The number with `b` added to its absolute value, if that is positive (Arjovsky et al., 2016).
#[custom_op(name = "opcheck_complex::mod_relu")]
pub fn mod_relu<T: Float>(z: Complex<T>, b: T) -> Complex<T> {
    let r = z.abs();
    if r + b <= 0.0 { 0.0 } else { z * ((r + b) / r) }
}

#[test]
fn a_complex_tensor_is_not_also_passed_for_a_real_one() -> Result<()> {
    let z = Tensor::from_vec(vec![0.7, -1.2], [2])?.cast(DType::C128)?;
    let b = Tensor::from_vec(vec![0.5, 1.5], [2])?;
    opcheck(&mod_relu::op(), &[Sample { inputs: vec![Some(z), Some(b)], attrs: vec![] }]).into_result()
}

#[test]
fn detached_values_of_complex_numbers_are_held_constant() -> Result<()> {
    opcheck(&right::op(), &[]).into_result()
}

#[test]
fn a_wrong_gradient_of_complex_numbers_is_found() {
    for op in [wrong::op(), not_conjugated::op()] {
        let error = opcheck(&op, &[]).into_result().expect_err("the gradient is wrong");
        assert!(error.to_string().contains("gradient"), "{error}");
    }
}
