//! A body over whole tensors that calls an op with wrong arguments is reported when the registry is built.

use minitensor::prelude::*;
use minitensor::registry;
use minitensor_ops as _;

/// A misspelled keyword.
#[custom_op(name = "wrong::weights")]
fn weights(x: &Tensor) -> Result<Tensor> {
    Ok((x * 2.0).softmax(axes = -1))
}

#[test]
fn the_registry_names_the_op_the_place_and_a_similar_argument() {
    let error = registry::check().expect_err("the body is wrong").to_string();
    assert!(weights::op().name == "wrong::weights");
    for part in
        ["op 'wrong::weights'", "wrong_keyword.rs:8", "op 'softmax' has no argument 'axes'", "did you mean 'axis'?"]
    {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}
