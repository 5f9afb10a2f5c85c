//! Tests of the ops in Rust, without loading the plugin.

use gallery::physics::lennard_jones;
use gallery::quantization::fake_quantize;
use minitensor_ops as _;
use minitensor_plugin_sdk::prelude::*;
use minitensor_plugin_sdk::registry;
use minitensor_plugin_sdk::testing::{Sample, opcheck};

/// The ops with their own test.
const APART: [&str; 2] = ["fake_quantize", "lennard_jones"];

/// Checks every second op, from the number `first`, so that two threads share the work.
fn check(first: usize) {
    let is_ours = |file: &str, name: &str| file.starts_with("src/") && !APART.contains(&name);
    let ops: Vec<_> = registry::list().into_iter().filter(|op| is_ours(&op.location.file, &op.name)).collect();
    assert!(ops.len() >= 60, "only {} ops are registered", ops.len());
    let faults: Vec<String> = ops
        .iter()
        .skip(first)
        .step_by(2)
        .filter_map(|op| opcheck(op, &[]).into_result().err())
        .map(|fault| fault.to_string())
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn every_op_passes_opcheck() {
    check(0);
}

#[test]
fn every_other_op_passes_opcheck() {
    check(1);
}

/// Generated distances are so close to 0 that finite differences lose all digits.
#[test]
fn lennard_jones_passes_opcheck_near_its_minimum() -> Result<()> {
    let op = lennard_jones::op();
    let r = Tensor::from_vec(vec![0.9, 1.1, 1.3, 2.0], [4])?;
    opcheck(&op, &[Sample { inputs: vec![Some(r)], attrs: op.example() }]).into_result()
}

/// A straight-through gradient is not that of the steps, which is 0.
#[test]
fn the_gradient_of_fake_quantize_differs_from_its_steps() {
    let findings = opcheck(&fake_quantize::op(), &[]).findings;
    assert!(findings.iter().all(|finding| ["gradient", "formula"].contains(&finding.check)), "{findings:?}");
}
