//! Tests of the ops in Rust, without loading the plugin.

use minitensor_plugin_sdk::prelude::*;
use minitensor_plugin_sdk::testing::opcheck;
use rust_plugin_example::{rust_abs, rust_clamp, rust_gelu, rust_resonance, rust_soft_dtw, rust_transpose};

#[test]
fn every_op_passes_opcheck() -> Result<()> {
    let ops = [
        rust_abs::op(),
        rust_clamp::op(),
        rust_gelu::op(),
        rust_resonance::op(),
        rust_soft_dtw::op(),
        rust_transpose::op(),
    ];
    for op in ops {
        opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}

#[test]
fn values() -> Result<()> {
    let x = Tensor::from_vec(vec![-2.0, -1.0, 0.0, 1.0, 2.0], [5])?;
    let (low, high) = (Tensor::from_vec(vec![-1.0], [1])?, Tensor::from_vec(vec![1.0], [1])?);
    assert_eq!(rust_abs::call(&x)?.to_vec::<f64>()?, [2.0, 1.0, 0.0, 1.0, 2.0]);
    assert_eq!(rust_clamp::call(&x, &low, &high)?.to_vec::<f64>()?, [-1.0, -1.0, 0.0, 1.0, 1.0]);
    assert_eq!(rust_gelu::call(&x)?.to_vec::<f64>()?[2], 0.0);
    let m = Tensor::from_vec(vec![1, 2, 3, 4, 5, 6], [2, 3])?;
    assert_eq!(rust_transpose::call(&m, Some(8))?.to_vec::<i32>()?, [1, 4, 2, 5, 3, 6]);
    Ok(())
}
