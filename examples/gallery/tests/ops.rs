//! Tests of the ops in Rust, without loading the plugin.

use gallery as _;
use minitensor_ops as _;
use minitensor_plugin_sdk::prelude::*;
use minitensor_plugin_sdk::registry;
use minitensor_plugin_sdk::testing::opcheck;

/// Checks the ops whose number among all is `part` modulo 2, so that two threads share the work.
fn check(part: usize) -> Result<()> {
    let ops = registry::list().into_iter().filter(|op| op.location.file.starts_with("src/"));
    let faults: Vec<String> = ops
        .skip(part)
        .step_by(2)
        .filter_map(|op| opcheck(&op, &[]).into_result().err())
        .map(|fault| fault.to_string())
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    Ok(())
}

#[test]
fn every_op_passes_opcheck() -> Result<()> {
    check(0)
}

#[test]
fn every_other_op_passes_opcheck() -> Result<()> {
    check(1)
}
