//! A body over whole tensors that calls an op of another number of outputs is reported when the registry is built.

use minitensor::prelude::*;
use minitensor::registry;
use minitensor_ops as _;

/// Three outputs of an op that has two.
#[custom_op(name = "wrong::three")]
fn three(x: &Tensor) -> Result<Tensor> {
    let (values, _, _) = x.topk(2);
    Ok(values)
}

#[test]
fn the_registry_names_the_op_the_place_and_the_numbers() {
    let error = registry::check().expect_err("the body is wrong").to_string();
    assert!(three::op().name == "wrong::three");
    for part in ["op 'wrong::three'", "wrong_count.rs:8", "op 'topk' returns 2 tensors, expected 3"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}
