//! A gradient formula that calls an unknown op is reported when the registry is built.

use minitensor::prelude::*;
use minitensor::registry;
use minitensor_ops as _;

/// `2 x`, with a misspelled gradient.
#[custom_op(name = "wrong::doubled", backward = |d| { x: multipli(d, 2.0) })]
fn doubled<T: Float>(x: T) -> T {
    2.0 * x
}

#[test]
fn the_registry_names_the_op_the_place_and_a_similar_op() {
    let error = registry::check().expect_err("the formula is wrong").to_string();
    assert!(doubled::op().name == "wrong::doubled");
    for part in
        ["the gradient of op 'wrong::doubled'", "unknown_call.rs:8", "calls 'multipli'", "did you mean 'multiply'?"]
    {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}
