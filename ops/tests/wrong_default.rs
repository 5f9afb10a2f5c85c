//! A default that the dtypes of an op cannot represent is reported when the registry is built.

use minitensor::prelude::*;
use minitensor::registry;
use minitensor_ops as _;

/// `p x`
#[custom_op(name = "wrong::scaled")]
fn scaled<T: Int>(x: T, #[default = 0.5] p: f64) -> T {
    x * p
}

/// `p Σ x`
#[custom_op(name = "wrong::scaled_sum", shape = (x: [.., n]) -> [..])]
fn scaled_sum<R: IntRow>(x: R, #[default = 0.5] p: f64) -> R {
    x.sum() * p
}

#[test]
fn the_registry_names_the_ops_and_the_defaults() {
    let error = registry::check().expect_err("two defaults are wrong").to_string();
    for op in [scaled::op(), scaled_sum::op()] {
        let expected =
            format!("op '{}' has only integer dtypes, so 'p' must be an integer, got 0.5 by default", op.name);
        assert!(error.contains(&expected), "{error}");
    }
}
