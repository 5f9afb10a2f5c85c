//! A default that the dtypes of an op cannot represent is reported when the registry is built.

use minitensor::prelude::*;
use minitensor::registry;
use minitensor_ops as _;

/// `p x`
#[custom_op(name = "wrong::scaled")]
fn scaled<T: Int>(x: T, #[default = 0.5] p: f64) -> T {
    x * p
}

#[test]
fn the_registry_names_the_op_and_the_default() {
    let error = registry::check().expect_err("the default is wrong").to_string();
    assert!(scaled::op().name == "wrong::scaled");
    assert_eq!(error, "op 'wrong::scaled' has only integer dtypes, so 'p' must be an integer, got 0.5 by default");
}
