//! A body over whole tensors that calls an unknown op is reported when the registry is built.

use minitensor::prelude::*;
use minitensor::registry;
use minitensor::testing::opcheck;
use minitensor_ops as _;

/// A misspelled softmax.
#[custom_op(name = "wrong::weights")]
fn weights(x: &Tensor) -> Result<Tensor> {
    Ok((x * 2.0).sofmax(axis = -1))
}

#[test]
fn the_registry_names_the_op_the_place_and_a_similar_op() {
    let error = registry::check().expect_err("the body is wrong").to_string();
    assert!(weights::op().name == "wrong::weights");
    for part in ["op 'wrong::weights'", "unknown_body.rs:9", "calls 'sofmax'", "did you mean 'softmax'?"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[test]
fn opcheck_finds_it() {
    let report = opcheck(&weights::op(), &[]);
    let [finding] = &report.findings[..] else { panic!("expected one finding: {report}") };
    assert!(finding.check == "calls" && finding.message.contains("there is no op 'sofmax'"), "{report}");
    assert!(report.into_result().is_err());
}
