//! Tests of the ops, without Python.

use super::*;
use minitensor_ops as _;
use minitensor_plugin_sdk::testing::opcheck;

#[test]
fn every_op_passes_opcheck() -> Result<()> {
    opcheck(&squareplus::op(), &[]).into_result()?;
    opcheck(&tempered_softmax::op(), &[]).into_result()?;
    opcheck(&free_energy::op(), &[]).into_result()?;
    opcheck(&damped::op(), &[]).into_result()?;
    opcheck(&rms_norm::op(), &[]).into_result()?;
    opcheck(&moving_average::op(), &[]).into_result()
}

#[test]
fn squareplus_is_close_to_relu_far_from_zero() -> Result<()> {
    assert_eq!(squareplus(0.0, 4.0), 1.0);
    let x = Tensor::from_vec(vec![-1e4, 1e4], [2])?;
    let y = squareplus::call(&x, 4.0)?.to_vec::<f64>()?;
    assert!(y[0] < 1e-3 && (y[1] - 1e4).abs() < 1e-3);
    Ok(())
}

#[test]
fn moving_average_forgets() -> Result<()> {
    let x = Tensor::from_vec(vec![4.0, 0.0, 0.0], [3])?;
    let y = moving_average::call(&x, 0.5)?;
    assert_eq!(y.to_vec::<f64>()?, [2.0, 1.0, 0.5]);
    Ok(())
}
