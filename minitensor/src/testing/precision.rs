//! Whether long reductions keep their digits.

use std::time::{Duration, Instant};

use super::layouts::results;
use super::opcheck::with;
use super::sample::Sample;
use super::values::{Random, close, numbers};
use crate::autograd::{Options, grad};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::op::call::dtype_rule::taken;
use crate::op::{Backward, Body, DTypeRule, Formula, Generic, OpRef, Role};
use crate::random::manual_seed;
use crate::tensor::Tensor;

/// Enough that adding one by one in single precision shows.
const LONG: usize = 100_003;

/// Where an op accepts only floats, integers must be promoted to the default dtype. Integers cannot be mutated in place then.
pub fn integers_are_promoted(op: &OpRef, sample: &Sample) -> Result<()> {
    let promotes = |g: &Generic| taken(DType::I64, g.dtypes) == DType::F32;
    let is_generic = |i: usize| matches!(op.parameter(i).dtype, DTypeRule::Generic(_));
    if op.generics.is_empty() || !op.generics.iter().all(promotes) || (0..op.inputs.len()).all(|i| !is_generic(i)) {
        return Ok(());
    }
    let whole = sample.map(|i, t| if is_generic(i) { t.cast(DType::I64) } else { Ok(t.clone()) })?;
    let float = whole.map(|i, t| if is_generic(i) { t.cast(DType::F32) } else { Ok(t.clone()) })?;
    let (got, expected) = (results(op, &whole.copied()?), results(op, &float));
    if op.inputs.iter().any(|i| i.mutated) {
        return match got {
            Err(e) if e.kind() == ErrorKind::Type => Ok(()),
            _ => Err(Error::runtime(
                "the op changes an integer tensor in place, but computes in float32; it must raise a TypeError",
            )),
        };
    }
    let Ok(expected) = expected else { return Ok(()) };
    for (k, (a, b)) in got.map_err(|e| e.context("integers"))?.iter().zip(&expected).enumerate() {
        if !close(a, b, 0.0)? {
            return Err(Error::runtime(format!(
                "output {k} is {a} for integers, but {b} for the same numbers in float32"
            )));
        }
    }
    Ok(())
}

/// Results in half precision must equal those of the same values in single precision, rounded once: nothing is rounded in
/// between. Gradients must agree to within the precision of the largest element, unless they read a result, which is rounded
/// when it is returned.
pub fn halves_are_rounded_once(op: &OpRef, sample: &Sample) -> Result<()> {
    // The closure may round between the ops that it calls.
    if matches!(&op.body, Body::Dynamic(body) if body.is_interpreted) {
        return Ok(());
    }
    let is_float = |t: &Tensor| t.dtype() == DType::F64;
    if !sample.inputs.iter().flatten().any(is_float) || op.inputs.iter().any(|i| i.mutated) {
        return Ok(());
    }
    let seeded = |seed: u64| {
        manual_seed(seed);
        sample.call(op)?.iter().map(numbers).collect::<Result<Vec<_>>>()
    };
    // Random numbers of two dtypes differ, so random ops are skipped.
    if format!("{:?}", seeded(0)?) != format!("{:?}", seeded(1)?) {
        return Ok(());
    }
    for half in [DType::F16, DType::Bf16] {
        let narrow = sample.map(|_, t| if is_float(t) { t.cast(half) } else { Ok(t.clone()) })?;
        let wide = narrow.map(|_, t| if t.dtype() == half { t.cast(DType::F32) } else { Ok(t.clone()) })?;
        let Ok((narrow, wide)) =
            results_and_gradients(op, &narrow).and_then(|n| Ok((n, results_and_gradients(op, &wide)?)))
        else {
            continue;
        };
        for (k, (a, b)) in narrow.iter().zip(&wide).enumerate() {
            if a.dtype() != half || b.dtype() != DType::F32 {
                continue;
            }
            // The order of a sum may differ, which can change the rounding.
            let step = if half == DType::F16 { 2.0_f64.powi(-10) } else { 2.0_f64.powi(-7) };
            let expected = numbers(&b.cast(half)?)?;
            let is_result = k < op.outputs.len();
            let largest = expected.iter().filter(|y| y.is_finite()).fold(1e-4, |most: f64, y| most.max(y.abs()));
            let scale = |y: f64| if is_result { y.abs().max(1e-4) } else { 2.0 * largest };
            let off = |(x, y): (f64, f64)| (x - y).abs() > 1.01 * step * scale(y) && y.is_finite() && x.is_finite();
            if let Some((x, y)) = numbers(a)?.into_iter().zip(expected).find(|pair| off(*pair)) {
                return Err(Error::runtime(format!(
                    "a result or gradient is {x} in {half}, but {y} in float32: an intermediate value is rounded"
                )));
            }
        }
    }
    Ok(())
}

/// All results, followed by the gradients of all floating inputs, if the op has them.
fn results_and_gradients(op: &OpRef, sample: &Sample) -> Result<Vec<Tensor>> {
    let mut all = results(op, sample)?;
    let reads_results = |f: &Formula| f.saved_outputs.iter().any(|k| op.outputs[*k as usize].role == Role::Returned);
    match &op.backward {
        Backward::None(_) | Backward::NotNeeded => return Ok(all),
        Backward::Formula(formula) if reads_results(formula) => return Ok(all),
        _ => {}
    }
    let is_float = |t: &Tensor| t.dtype().is_differentiable();
    let leaves = sample.map(|_, t| if is_float(t) { t.detach().with_requires_grad() } else { Ok(t.clone()) })?;
    let outputs: Vec<Tensor> = leaves.call(op)?.into_iter().filter(Tensor::requires_grad).collect();
    let cotangents: Vec<_> = outputs
        .iter()
        .map(|t| Tensor::full(t.shape().clone(), 1.0.into(), t.dtype(), t.device()).map(Some))
        .collect::<Result<_>>()?;
    let leaves: Vec<Tensor> = leaves.inputs.into_iter().flatten().filter(Tensor::requires_grad).collect();
    all.extend(grad(&outputs, &leaves, &cotangents, Options::default())?.into_iter().flatten());
    Ok(all)
}

/// Whether the longest row would take more than some seconds, even if the time grows with the square of the length.
fn is_too_slow(op: &OpRef, sample: &Sample, random: &mut Random) -> Result<bool> {
    const PART: usize = 64;
    let row = random.tensor(&[LONG / PART], DType::F64, 0.0, 1.0)?;
    let begin = Instant::now();
    let _ = results(op, &Sample { inputs: vec![Some(row)], attrs: sample.attrs.clone() });
    Ok(begin.elapsed() * (PART * PART) as u32 > Duration::from_secs(10))
}

/// How much the result changes, relative to how much all elements change: `Σ |∂y / ∂xᵢ · xᵢ|`. It is larger than the result if large terms
/// cancel. 0 without a gradient.
fn condition(op: &OpRef, sample: &Sample) -> f64 {
    let change = || -> Result<f64> {
        let Some(Some(x)) = sample.inputs.first() else { return Ok(0.0) };
        let leaf = x.copied()?.with_requires_grad()?;
        let outputs = Sample { inputs: vec![Some(leaf.clone())], attrs: sample.attrs.clone() }.call(op)?;
        let gradients = grad(&outputs[..1], &[leaf], &[None], Options::default())?;
        let Some(Some(gradient)) = gradients.first() else { return Ok(0.0) };
        Ok(numbers(gradient)?.iter().zip(numbers(x)?).map(|(g, x)| (g * x).abs()).sum())
    };
    change().unwrap_or(0.0)
}

/// A float input grows along its last axis. If the output does not grow, the op is a reduction, and single precision must agree
/// with double precision.
pub fn long_rows_keep_their_digits(op: &OpRef, sample: &Sample) -> Result<()> {
    let [Some(t)] = &sample.inputs[..] else { return Ok(()) };
    if t.dtype() != DType::F64 || t.ndim() == 0 || matches!(op.body, Body::Element(_)) {
        return Ok(());
    }
    let mut random = Random::new(7);
    let short = Sample { inputs: vec![Some(random.tensor(&[16], DType::F64, 0.0, 1.0)?)], attrs: sample.attrs.clone() };
    if results(op, &short).is_ok_and(|results| results.iter().all(|y| y.numel() != 1)) {
        return Ok(());
    }
    // A scan computes its elements in sequence, so the errors of a long row add up.
    let scans = op.program(&sample.attrs, |_| true).is_ok_and(|program| program.is_some_and(|p| p.scans()));
    let is_slow = is_too_slow(op, sample, &mut random)?;
    let cases = [(DType::F32, LONG, 3e-6), (DType::F16, 4096, 4e-3), (DType::Bf16, 4096, 3e-2)];
    for (dtype, n, tolerance) in cases.into_iter().filter(|(_, n, _)| !(scans || is_slow) || *n < LONG) {
        let row = random.tensor(&[n], DType::F64, 0.0, 2.0 / (n as f64).sqrt())?.cast(dtype)?;
        let long = Sample { inputs: vec![Some(row.clone())], attrs: sample.attrs.clone() };
        let wide = Sample { inputs: vec![Some(row.cast(DType::F64)?)], attrs: sample.attrs.clone() };
        let condition = condition(op, &wide);
        let (Ok(narrow), Ok(wide)) = (results(op, &long), results(op, &wide)) else { continue };
        for (a, b) in narrow.iter().zip(&wide) {
            if b.numel() != 1 || a.dtype() != dtype || b.dtype() != DType::F64 {
                continue;
            }
            let (x, y) = (numbers(a)?[0], numbers(b)?[0]);
            // A number beyond the range of the dtype is infinite.
            let fits = numbers(&b.cast(dtype)?)?[0].is_finite();
            if fits && y.abs() > 1e-3 && (x - y).abs() > tolerance * y.abs().max(condition) {
                return Err(Error::runtime(format!(
                    "the result is {x}, but {y} in double precision; use pairwise summation, and accumulate 16-bit \
                     floats in float32{}",
                    with(op, &long)
                )));
            }
        }
    }
    Ok(())
}
