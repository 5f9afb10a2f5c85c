//! `opcheck` of written gradients of ops with complex numbers and detached values.

use minitensor::prelude::*;
use minitensor::testing::opcheck;
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
