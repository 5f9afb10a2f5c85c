//! A body over tensors computes half floats as `float32` from start to end, and so does its gradient.

use minitensor::autograd::{Options, grad};
use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;

/// Takes at an index that the body makes.
#[custom_op(name = "half_bodies::taken")]
pub fn taken(a: &Tensor) -> Result<Tensor> {
    let i = Tensor::from_vec(vec![0_i64], [1])?;
    Ok((a / 0.1).log_softmax(-1).take(i, 1).sum())
}

/// Adds numbers that the body makes.
#[custom_op(name = "half_bodies::shifted")]
pub fn shifted(a: &Tensor) -> Result<Tensor> {
    let shift = Tensor::from_vec(vec![0.0_f32], [1])?;
    Ok(((a / 0.1).log_softmax(-1) + shift)[(.., 0)].sum())
}

/// Selects by a mask that the body makes.
#[custom_op(name = "half_bodies::masked")]
pub fn masked(a: &Tensor) -> Result<Tensor> {
    let mask = Tensor::from_vec(vec![true], [1])?;
    Ok(ops::where_(mask, (a / 0.1).log_softmax(-1), 0.0)[(.., 0)].sum())
}

/// Uses an input through two views, whose gradients cancel.
#[custom_op(name = "half_bodies::twice")]
pub fn twice(a: &Tensor) -> Result<Tensor> {
    Ok((a.unsqueeze(0) * 1.01).sin() - a.unsqueeze(0).sin())
}

/// The results and the gradient, as numbers.
fn run(op: fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<(Vec<f64>, Vec<f64>)> {
    let x = x.detach().with_requires_grad()?;
    let y = op(&x)?;
    let ones = Tensor::ones(y.shape().clone(), y.dtype(), y.device())?;
    let found = grad(std::slice::from_ref(&y), &[x], &[Some(ones)], Options::default())?;
    let dx = found[0].as_ref().expect("a gradient");
    Ok((y.cast(DType::F64)?.to_vec()?, dx.cast(DType::F64)?.to_vec()?))
}

#[test]
fn results_and_gradients_are_those_of_float32_rounded_once() -> Result<()> {
    let values: Vec<f32> = (0..20).map(|i| ((i * 37 % 41) as f32 - 20.0) / 11.0).collect();
    let narrow = Tensor::from_vec(values, [4, 5])?.cast(DType::F16)?;
    let ops: [fn(&Tensor) -> Result<Tensor>; 4] = [taken::call, shifted::call, masked::call, twice::call];
    for (k, op) in ops.into_iter().enumerate() {
        let ((y, dy), (exact, slope)) = (run(op, &narrow)?, run(op, &narrow.cast(DType::F32)?)?);
        for (got, exact) in y.iter().zip(&exact).chain(dy.iter().zip(&slope)) {
            // Half a unit in the last of 11 bits; below 2⁻¹⁴, of 2⁻²⁴.
            let half = (exact.abs() * 2_f64.powi(-11)).max(2_f64.powi(-25));
            assert!((got - exact).abs() <= half * 1.001, "op {k}: {got} {exact}");
        }
    }
    Ok(())
}

#[test]
fn opcheck_agrees() -> Result<()> {
    for op in [taken::op(), shifted::op(), masked::op(), twice::op()] {
        opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}
