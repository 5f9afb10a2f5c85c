//! Tests of the ops in Rust, without loading the plugin.

use gallery::finance::{black_scholes, implied_volatility};
use gallery::physics::lennard_jones;
use gallery::quantization::fake_quantize;
use minitensor_ops as _;
use minitensor_plugin_sdk::autograd::grad;
use minitensor_plugin_sdk::prelude::*;
use minitensor_plugin_sdk::registry;
use minitensor_plugin_sdk::testing::{Sample, opcheck};

/// The ops with their own test.
const APART: [&str; 3] = ["fake_quantize", "lennard_jones", "implied_volatility"];

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

/// An option has a volatility only if its price is less than that of the stock. Generated prices may be higher.
#[test]
fn implied_volatility_inverts_the_price() -> Result<()> {
    let t = |values: [f64; 3]| Tensor::from_vec(values.to_vec(), [3]);
    let slope = |y: Tensor, x: &Tensor| -> Result<Vec<f64>> {
        let gradients = grad(&[y], &[x.clone()], &[Some(t([1.0; 3])?)], Default::default())?;
        gradients[0].as_ref().expect("a gradient").to_vec()
    };
    let (spot, strike, time) = (t([1.0, 1.2, 0.9])?, t([1.0, 1.1, 1.0])?, t([1.0, 0.5, 2.0])?);
    let (rate, volatility) = (t([0.02, 0.03, 0.01])?, t([0.2, 0.3, 0.25])?.with_requires_grad()?);
    let price = black_scholes::call(&spot, &strike, &time, &rate, &volatility)?;
    let vega = slope(price.clone(), &volatility)?;
    let price = price.detach().with_requires_grad()?;
    let found = implied_volatility::call(&price, &spot, &strike, &time, &rate, 20, 1e-9)?;
    for (found, expected) in found.to_vec::<f64>()?.into_iter().zip([0.2, 0.3, 0.25]) {
        assert!((found - expected).abs() < 1e-9, "{found} and {expected}");
    }
    for (slope, vega) in slope(found, &price)?.into_iter().zip(vega) {
        assert!((slope * vega - 1.0).abs() < 1e-6, "{slope} and {vega}");
    }
    Ok(())
}

/// A straight-through gradient is not that of the steps, which is 0.
#[test]
fn the_gradient_of_fake_quantize_differs_from_its_steps() {
    let findings = opcheck(&fake_quantize::op(), &[]).findings;
    assert!(findings.iter().all(|finding| ["gradient", "formula"].contains(&finding.check)), "{findings:?}");
}
