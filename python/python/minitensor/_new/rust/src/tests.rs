//! The ops, checked without Python.

use super::*;
use minitensor_ops as _;
use minitensor_plugin_sdk::testing::opcheck;

#[test]
fn every_op_passes_opcheck() {
    for op in [squareplus::op(), tempered_softmax::op(), moving_average::op()] {
        opcheck(&op, &[]).into_result().unwrap();
    }
}

#[test]
fn squareplus_is_close_to_relu_far_from_zero() {
    assert_eq!(squareplus(0.0, 4.0), 1.0);
    let x = Tensor::from_vec(vec![-1e4, 1e4], [2]).unwrap();
    let y = squareplus::call(&x, 4.0).unwrap().to_vec::<f64>().unwrap();
    assert!(y[0] < 1e-3 && (y[1] - 1e4).abs() < 1e-3);
}

#[test]
fn moving_average_forgets() {
    let x = Tensor::from_vec(vec![4.0, 0.0, 0.0], [3]).unwrap();
    assert_eq!(moving_average::call(&x, 0.5).unwrap().to_vec::<f64>().unwrap(), [2.0, 1.0, 0.5]);
}
