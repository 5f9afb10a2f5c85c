//! Checks of values: shapes, dtypes, layouts.

use super::opcheck::{dtypes, quietly};
use super::sample::Sample;
use super::values::{close, numbers};
use crate::autograd::NoGrad;
use crate::dtype::{DType, Kind};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::op::{OpRef, Role, ShapeRule};
use crate::random::manual_seed;
use crate::tensor::{Device, Shape, Tensor, with_filled_memory};

pub(super) fn fail<T>(message: String) -> Result<T> {
    Err(Error::runtime(message))
}

/// The results of a call with a fixed seed, followed by the tensors that the call mutated.
pub(super) fn results(op: &OpRef, sample: &Sample) -> Result<Vec<Tensor>> {
    let _quiet = NoGrad::new();
    manual_seed(0);
    let mut results = sample.call(op)?;
    let changed = sample.inputs.iter().enumerate().filter(|(i, _)| op.parameter(*i).mutated);
    results.extend(changed.filter_map(|(_, t)| t.as_ref().map(Tensor::detach)));
    Ok(results)
}

/// Inferred shapes and dtypes must equal those of the results.
pub fn inferred_is_real(op: &OpRef, sample: &Sample) -> Result<()> {
    if sample.inputs.iter().flatten().any(|t| t.expect_cpu().is_err()) {
        return Ok(());
    }
    let _quiet = NoGrad::new();
    let real = sample.copied()?.call(op)?;
    let inferred = match sample.infer(op) {
        Ok(inferred) => inferred,
        // A body that needs values reports that.
        Err(e) if e.message().contains("'meta'") => return Ok(()),
        Err(e) => return fail(format!("inference fails, but the op succeeds: {e}")),
    };
    if inferred.len() != real.len() {
        return fail(format!(
            "inference returns {}, but the op returns {}",
            counted(inferred.len(), "output"),
            real.len()
        ));
    }
    for (i, (a, b)) in inferred.iter().zip(&real).enumerate() {
        if a.shape() != b.shape() || a.dtype() != b.dtype() {
            let (x, y) = ((a.shape(), a.dtype()), (b.shape(), b.dtype()));
            return fail(format!("output {i} is inferred as {} {}, but the op returns {} {}", x.0, x.1, y.0, y.1));
        }
        if b.device() != Device::Cpu || a.device() != Device::Meta {
            return fail(format!(
                "output {i} is inferred on device '{}', but the op returns it on device '{}'",
                a.device(),
                b.device()
            ));
        }
    }
    Ok(())
}

/// Only `&mut` inputs may change.
pub fn inputs_are_left_alone(op: &OpRef, sample: &Sample) -> Result<()> {
    let before = sample.copied()?;
    results(op, sample)?;
    for (i, (a, b)) in before.inputs.iter().zip(&sample.inputs).enumerate() {
        if let (Some(a), Some(b), false) = (a, b, op.parameter(i).mutated)
            && !close(a, b, 0.0)?
        {
            return fail(format!("the input '{}' is changed by the call", op.parameter(i).name));
        }
    }
    Ok(())
}

/// The body must write every element of its outputs: their memory is not empty before.
pub fn outputs_are_written(op: &OpRef, sample: &Sample) -> Result<()> {
    let with = |byte| with_filled_memory(byte, || results(op, &sample.copied()?));
    let what = "the body does not write all elements of an output, which keeps what its memory held before";
    compare(&with(0x00)?, &with(0xff)?, 0.0, what)
}

/// The same call must return the same bits, on any number of threads.
pub fn twice_is_the_same(op: &OpRef, sample: &Sample) -> Result<()> {
    let first = results(op, &sample.copied()?)?;
    for _ in 0..2 {
        compare(&first, &results(op, &sample.copied()?)?, 0.0, "a second call returns other values")?;
    }
    let ShapeRule::Broadcast = op.shape else { return Ok(()) };
    let large = sample.map(|_, t| {
        let shape: Vec<i64> = [20_000].into_iter().chain(t.shape().iter().map(|s| *s as i64)).collect();
        t.expand_view(&shape)?.copied()
    })?;
    let threads = crate::kernels::threads::num_threads();
    let many = results(op, &large.copied()?);
    crate::kernels::threads::set_num_threads(1);
    let one = results(op, &large);
    crate::kernels::threads::set_num_threads(threads);
    compare(&one?, &many?, 0.0, "one thread and several threads return different values")
}

pub(super) fn compare(a: &[Tensor], b: &[Tensor], tolerance: f64, what: &str) -> Result<()> {
    if a.len() != b.len() {
        return fail(format!("{what}: the numbers of outputs are {} and {}", a.len(), b.len()));
    }
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        if !close(a, b, tolerance)? {
            return fail(format!("{what}, output {i}: {a} and {b}"));
        }
    }
    Ok(())
}

/// Every dtype that the definition admits must work, and floating dtypes must agree with each other.
pub fn dtypes_agree(op: &OpRef, sample: &Sample) -> Result<()> {
    let wide = sample.inputs.iter().flatten().any(|t| t.dtype() == DType::F64);
    for dtype in dtypes(op) {
        let converted = sample.with_dtype(op, dtype)?;
        let got = match quietly(|| results(op, &converted.copied()?)) {
            Ok(got) => got,
            // An attribute may be valid for floats but not for integers.
            Err(e) if matches!(dtype.kind(), Kind::Signed | Kind::Unsigned) && e.message().contains("integer") => {
                continue;
            }
            // An attribute may choose a program that does not run at all dtypes.
            Err(_) if !op.program_runs_at(dtype, &sample.attrs, |i| sample.inputs[i].is_some()) => continue,
            // Only the CPU has kernels for all dtypes.
            Err(e) if e.kind() == ErrorKind::NotImplemented && sample.device() != Device::Cpu => continue,
            Err(e) => return fail(format!("the op fails for {dtype}, which its definition accepts: {e}")),
        };
        inferred_is_real(op, &converted)?;
        let tolerance = match dtype {
            DType::F16 => 2e-2,
            DType::Bf16 => 6e-2,
            DType::F32 => 1e-4,
            _ => continue,
        };
        if !wide {
            continue;
        }
        // The same values in double precision, so that only the rounding of the op itself shows.
        let expected = results(op, &converted.with_dtype(op, DType::F64)?)?;
        for (i, (a, b)) in got.iter().zip(&expected).enumerate() {
            let scale = numbers(b)?.into_iter().filter(|v| v.is_finite()).fold(1.0, |m: f64, v| m.max(v.abs()));
            let off = |(x, y): (f64, f64)| y.is_finite() && (x - y).abs() > tolerance * scale && y.abs() < 6e4;
            if b.dtype() == DType::F64 && numbers(a)?.into_iter().zip(numbers(b)?).any(off) {
                return fail(format!("output {i} in {dtype} differs from that in float64: {a} and {b}"));
            }
        }
    }
    Ok(())
}

/// The same elements in another memory order.
fn relaid(t: &Tensor, how: usize) -> Result<Tensor> {
    let rank = t.ndim() as i64;
    match how {
        // Transposed memory.
        0 => {
            let back: Vec<i64> = (0..rank).rev().collect();
            t.permute_view(&back)?.copied()?.permute_view(&back)
        }
        // Every second element of a larger block.
        1 => {
            let mut shape: Vec<usize> = t.shape().to_vec();
            let Some(last) = shape.last_mut() else { return Ok(t.clone()) };
            let length = std::mem::replace(last, *last * 2);
            let block = Tensor::zeros(shape, t.dtype(), t.device())?;
            let window = block.slice_view(-1, 0, length, 2)?;
            window.copy_from(t)?;
            Ok(window)
        }
        // Reversed.
        2 => {
            let turned = |t: &Tensor| match t.shape().last() {
                Some(n) if *n > 0 => t.slice_view(-1, n - 1, *n, -1),
                _ => Ok(t.clone()),
            };
            turned(&turned(t)?.copied()?)
        }
        // All elements at one address, if all are equal.
        _ => {
            let first: Vec<i64> = t.shape().iter().map(|s| *s as i64).collect();
            let one = (0..rank).try_fold(t.clone(), |t, axis| {
                if t.shape()[axis as usize] > 1 { t.slice_view(axis, 0, 1, 1) } else { Ok(t) }
            })?;
            one.expand_view(&first)
        }
    }
}

/// Transposed, strided, reversed and expanded inputs must give the same results as contiguous ones.
pub fn layout_does_not_matter(op: &OpRef, sample: &Sample) -> Result<()> {
    const LAYOUTS: [&str; 4] = ["transposed", "strided", "reversed", "expanded"];
    for (how, name) in LAYOUTS.iter().enumerate() {
        for only in 0..sample.inputs.len() {
            if how == 3 && op.parameter(only).mutated {
                continue;
            }
            let other = sample.map(|i, t| if i == only { relaid(t, how) } else { t.copied() })?;
            let straight = other.copied()?;
            let what = format!("the result differs when '{}' is {name} in memory", op.parameter(only).name);
            let (a, b) = match (results(op, &straight), quietly(|| results(op, &other))) {
                (Err(_), _) => continue, // Expanded values may leave the op's domain.
                (Ok(a), Ok(b)) => (a, b),
                (Ok(_), Err(e)) => {
                    return fail(format!("the op fails when '{}' is {name} in memory: {e}", op.parameter(only).name));
                }
            };
            compare(&a, &b, 1e-12, &what)?;
        }
    }
    Ok(())
}

/// Checks broadcast, empty and 0-d inputs.
pub fn broadcasts_and_empties(op: &OpRef, sample: &Sample) -> Result<()> {
    let batched = match &op.shape {
        ShapeRule::Broadcast => true,
        ShapeRule::Core(rule) => op.axis.is_none() && rule.inputs.iter().any(|d| d.batch),
        ShapeRule::Inferred => false,
    };
    let with_front = |sample: &Sample, sizes: &[i64]| {
        sample.map(|i, t| {
            let has_batch = match &op.shape {
                ShapeRule::Core(rule) => rule.input(i).batch,
                _ => true,
            };
            if !has_batch {
                return Ok(t.clone());
            }
            let shape: Vec<i64> = sizes.iter().copied().chain(t.shape().iter().map(|s| *s as i64)).collect();
            t.expand_view(&shape)?.copied()
        })
    };
    if batched {
        let empty = with_front(sample, &[0])?;
        let outputs = quietly(|| empty.call(op)).map_err(|e| e.context("an empty batch fails"))?;
        // An output without a batch is a sum over all cells.
        let has_batch = |k: &usize| if let ShapeRule::Core(rule) = &op.shape { rule.output(*k).batch } else { true };
        let returned = (0..op.outputs.len()).filter(|k| op.outputs[*k].role == Role::Returned);
        if returned.zip(&outputs).any(|(k, t)| has_batch(&k) && t.numel() != 0) {
            return fail("the result of an empty batch is not empty".into());
        }
        inferred_is_real(op, &empty).map_err(|e| e.context("an empty batch"))?;
        inferred_is_real(op, &with_front(sample, &[2, 1])?).map_err(|e| e.context("more batch dimensions"))?;
    }
    if !matches!(op.shape, ShapeRule::Broadcast) {
        return Ok(());
    }
    let number = sample.map(|_, t| {
        let flat = t.reshape_view(&[-1])?;
        flat.slice_view(0, 0, 1, 1)?.reshape_view(&[])?.copied()
    })?;
    inferred_is_real(op, &number).map_err(|e| e.context("0-d inputs"))?;
    // One input at a time, without its first dimension.
    for only in 0..sample.inputs.len() {
        if op.parameter(only).mutated || sample.inputs.iter().flatten().count() == 1 {
            continue;
        }
        let narrow = sample.map(|i, t| {
            if i == only && t.ndim() > 0 { t.slice_view(0, 0, 1, 1)?.squeeze_view(0)?.copied() } else { t.copied() }
        })?;
        let wide =
            narrow.map(|i, t| if i == only { t.broadcast_view(&widest(sample)).copied() } else { t.copied() })?;
        let (a, b) = (
            results(op, &wide)?,
            results(op, &narrow).map_err(|e| e.context(format!("broadcasting '{}' fails", op.parameter(only).name)))?,
        );
        compare(&a, &b, 0.0, &format!("broadcasting '{}' returns other values", op.parameter(only).name))?;
    }
    Ok(())
}

fn widest(sample: &Sample) -> Shape {
    let all = sample.inputs.iter().flatten();
    all.fold(Shape::default(), |shape, t| shape.broadcast(t.shape()).unwrap_or(shape))
}

/// A written tensor must not overlap another tensor that is read or written.
pub fn overlapping_writes_are_refused(op: &OpRef, sample: &Sample) -> Result<()> {
    let mutated: Vec<usize> = (0..sample.inputs.len()).filter(|i| op.parameter(*i).mutated).collect();
    for i in &mutated {
        for j in (0..sample.inputs.len()).filter(|j| j != i) {
            let (Some(a), Some(b)) = (&sample.inputs[*i], &sample.inputs[j]) else { continue };
            if a.shape() != b.shape() || a.dtype() != b.dtype() {
                continue;
            }
            let expected = if mutated.contains(&j) {
                None
            } else {
                Some(results(op, &sample.map(|k, t| if k == j { a.copied() } else { t.copied() })?)?)
            };
            let fresh = sample.copied()?;
            let shared = fresh.inputs[*i].clone();
            let aliased = Sample {
                inputs: fresh
                    .inputs
                    .iter()
                    .enumerate()
                    .map(|(k, t)| if k == j { shared.clone() } else { t.clone() })
                    .collect(),
                attrs: fresh.attrs,
            };
            let (x, y) = (&op.parameter(*i).name, &op.parameter(j).name);
            match (expected, results(op, &aliased)) {
                (_, Err(_)) => {}
                (None, Ok(_)) => {
                    return fail(format!(
                        "'{x}' and '{y}' are both changed in place, but the op accepts one tensor for both"
                    ));
                }
                (Some(a), Ok(b)) => compare(
                    &a,
                    &b,
                    1e-12,
                    &format!("the result differs when '{x}', which is changed in place, is also '{y}'"),
                )?,
            }
        }
    }
    Ok(())
}
