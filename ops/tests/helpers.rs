//! Ops with helpers compute what the same ops without helpers compute.

use minitensor::prelude::*;
use minitensor::testing::{Sample, opcheck};
use minitensor_ops as _;

#[path = "../../ui-tests/ui/pass/helpers.rs"]
mod users;

use users::{exp_like, parts_of, smoothed_cells, standardized_rows};

#[test]
fn ops_with_helpers_pass_opcheck() -> Result<()> {
    users::main()?;
    for op in [parts_of::op(), exp_like::op(), standardized_rows::op(), smoothed_cells::op()] {
        opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}

/// `parts_of` without helpers.
#[custom_op(dtype = (x: T) -> (low: T, high: T))]
fn inlined_parts<T: Float>(x: T, #[default = 0.5] limit: f64) -> (T, T) {
    let low = if x < limit { x } else { limit };
    (x - low, low)
}

/// The first output of `standardized_rows` without helpers.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
fn inlined_rows<R: Row>(x: R, #[default = 1e-5] eps: f64) -> R {
    let m = x.mean();
    (x - m) / ((x - m).square().mean() + eps).sqrt()
}

#[test]
fn a_helper_changes_no_bit_of_results_and_gradients() -> Result<()> {
    let data: Vec<f64> = (0..12).map(|i| (f64::from(i) * 0.7).sin() * 2.0).collect();
    let x = Tensor::from_vec(data, [3, 4])?.with_requires_grad()?;
    let at = Tensor::from_vec(vec![0_i64, 3, 1], [3])?;
    let grad = |y: Tensor| -> Result<Vec<f64>> {
        let seed = minitensor_ops::exponential::exp::call(&y.detach())?;
        let grads = minitensor::autograd::grad(&[y], std::slice::from_ref(&x), &[Some(seed)], Default::default())?;
        grads[0].as_ref().expect("x has a gradient").to_vec::<f64>()
    };
    let with = [parts_of::call(&x, 0.3)?.0, standardized_rows::call(&x, &at, 1e-3)?.0];
    let without = [inlined_parts::call(&x, 0.3)?.0, inlined_rows::call(&x, 1e-3)?];
    for (with, without) in with.into_iter().zip(without) {
        assert_eq!(with.to_vec::<f64>()?, without.to_vec::<f64>()?);
        assert_eq!(grad(with)?, grad(without)?);
    }
    Ok(())
}

#[test]
fn a_helper_of_cells_runs_at_every_float() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0_f32, 3.0, 5.0], [3])?;
    let sample = Sample { inputs: vec![Some(x.clone())], attrs: vec![0.5.into()] };
    opcheck(&smoothed_cells::op(), &[sample]).into_result()?;
    assert_eq!(smoothed_cells::call(&x, 0.5)?.0.to_vec::<f32>()?, [1.25, 2.0, 2.0]);
    Ok(())
}
