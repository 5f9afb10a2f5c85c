//! Compares the program of an element op with its compiled loops.

use minitensor_kernels::program::Program;

use super::layouts::results;
use super::sample::Sample;
use super::values::{close, numbers};
use crate::attr::{Attr, AttrKind};
use crate::autograd::{Options, grad};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Backward, Body, OpRef, Role, ShapeRule};
use crate::tensor::{Device, Tensor};

/// Values that often reveal faults in bodies.
const SPECIAL: [f64; 8] = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-310, 1e300, -1.0];

/// A part of the error for a program that is too long.
pub(super) const TOO_LONG: &str = "reduce the number of turns of its loops";

/// The program of a call. `None` if there is none, or if it is too long: only a compiled loop computes such a body.
pub(super) fn program(op: &OpRef, sample: &Sample) -> Result<Option<Program>> {
    match op.program(&sample.attrs, |i| sample.inputs[i].is_some()) {
        Err(e) if e.message().contains(TOO_LONG) => Ok(None),
        found => found?.map_or(Ok(None), verified),
    }
}

/// The program if it is valid. `None` if it is too long.
pub(super) fn verified(program: Program) -> Result<Option<Program>> {
    match program.verify().map_err(|e| Error::runtime(e.to_string())) {
        Err(e) if e.message().contains(TOO_LONG) => Ok(None),
        outcome => outcome.map(|()| Some(program)),
    }
}

/// Compares the program with the compiled loop: at numbers, over memory, and simplified. Compares the gradient with the compiled
/// gradient.
pub fn program_is_the_body(op: &OpRef, sample: &Sample) -> Result<()> {
    let is_wide = |t: &Tensor| matches!(t.dtype(), DType::F64 | DType::Bool | DType::I64);
    // The kernels of other devices need not compute the same bits.
    if sample.device() != Device::Cpu {
        return Ok(());
    }
    if !sample.inputs.iter().flatten().all(is_wide) || !sample.inputs.iter().flatten().any(|t| t.dtype() == DType::F64)
    {
        return Ok(());
    }
    if let (Body::Cell(_), ShapeRule::Core(rule)) = (&op.body, &op.shape) {
        return super::rows::program_is_the_body(op, rule, sample);
    }
    let Some(program) = program(op, sample)? else { return Ok(()) };
    // A program of several dtypes may have functions of integers.
    if op.generics.len() > 1 && !program.runs_at::<f64>() {
        return Ok(());
    }
    let program = program.giving(&in_order_of_results(op));
    let shifted = |by: usize| {
        sample.map(|i, t| {
            let special =
                |(k, x): (usize, f64)| if k % 3 == 0 { SPECIAL[(k / 3 + by * (i + 1)) % SPECIAL.len()] } else { x };
            let values = numbers(t)?.into_iter().enumerate();
            let values =
                if t.dtype() == DType::F64 { values.map(special).collect() } else { values.map(|v| v.1).collect() };
            super::values::tensor_like(t, values)
        })
    };
    let (mut tried, uniforms) = (vec![sample.clone()], uniforms(op, &sample.attrs));
    for by in 0..SPECIAL.len() {
        tried.push(shifted(by)?);
    }
    for sample in &tried {
        let compiled = results(op, &sample.copied()?)?;
        let inputs = elements(sample, &compiled[0])?;
        for (how, got) in
            [("", run(&program, &inputs, &uniforms)?), ("simplified ", run(&program.simplified(), &inputs, &uniforms)?)]
        {
            for (k, (a, b)) in compiled.iter().zip(&got).enumerate() {
                // An output of integers stores converted numbers.
                let b = match a.dtype().is_integer() {
                    true => &numbers(&super::values::tensor_like(a, b.clone())?)?,
                    false => b,
                };
                let a = numbers(a)?;
                let is_same = |(a, b): (&f64, &f64)| match how {
                    "" => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
                    // A stable form may be more accurate where the naive one overflows.
                    _ => {
                        (a - b).abs() <= 1e-9 * a.abs().max(1e-3) || !a.is_finite() || !b.is_finite() || a.abs() > 1e200
                    }
                };
                if let Some(at) = a.iter().zip(b).position(|pair| !is_same(pair)) {
                    return Err(Error::runtime(format!(
                        "output {k} of the {how}program is {:?}, but the compiled loop returns {:?}, at element {at}: \
                         {}",
                        b[at], a[at], program
                    )));
                }
            }
        }
    }
    gradients(op, sample, &uniforms)
}

/// The outputs in the order of [`results`]: those that are returned, then the inputs that are changed.
pub(super) fn in_order_of_results(op: &OpRef) -> Vec<usize> {
    let returned = (0..op.outputs.len()).filter(|k| op.outputs[*k].role == Role::Returned);
    let changed = (0..op.inputs.len()).filter_map(|i| op.outputs.iter().position(|o| o.role == Role::Mutates(i as u8)));
    returned.chain(changed).collect()
}

fn gradients(op: &OpRef, sample: &Sample, uniforms: &[f64]) -> Result<()> {
    if !matches!(op.backward, Backward::Derived(_)) || op.inputs.iter().any(|i| i.mutated) {
        return Ok(());
    }
    let wrt: Vec<usize> = (0..sample.inputs.len())
        .filter(|i| sample.inputs[*i].as_ref().is_some_and(|t| t.dtype() == DType::F64))
        .collect();
    let Some(program) = program(op, sample)? else { return Ok(()) };
    let program = program.giving(&op.cotangents().collect::<Vec<_>>());
    let Some(vjp) = program.vjp(&wrt) else {
        return Err(Error::runtime(format!("the program has no gradient: {program}")));
    };
    let Some(vjp) = verified(vjp)? else { return Ok(()) };
    // All inputs have one shape, so that no gradient is summed.
    let outputs = results(op, sample)?;
    let shape = outputs[0].shape().clone();
    let mut whole = sample.map(|_, t| t.broadcast_view(&shape).copied())?;
    for i in &wrt {
        whole.inputs[*i] = whole.inputs[*i].take().map(Tensor::with_requires_grad).transpose()?;
    }
    let outputs: Vec<Tensor> = whole.call(op)?.into_iter().filter(|t| t.dtype().is_differentiable()).collect();
    let cotangents: Vec<Tensor> =
        outputs.iter().enumerate().map(|(k, t)| super::gradcheck::cotangent(t, k)).collect::<Result<_>>()?;
    let leaves: Vec<Tensor> = wrt.iter().filter_map(|i| whole.inputs[*i].clone()).collect();
    let given: Vec<Option<Tensor>> = cotangents.iter().cloned().map(Some).collect();
    let compiled = grad(&outputs, &leaves, &given, Options::default())?;
    let mut inputs: Vec<Vec<f64>> = cotangents.iter().map(numbers).collect::<Result<_>>()?;
    inputs.extend(elements(&whole, &outputs[0])?);
    for ((name, got), compiled) in vjp.outputs().iter().map(|o| &o.0).zip(run(&vjp, &inputs, uniforms)?).zip(compiled) {
        let Some(compiled) = compiled else { continue };
        let symbolic = super::values::tensor_like(&compiled, got)?;
        if !close(&compiled, &symbolic, 1e-12)? {
            return Err(Error::runtime(format!(
                "'{name}' of the program is {symbolic}, but that of the compiled loop is {compiled}: {vjp}"
            )));
        }
    }
    Ok(())
}

/// The values of the numeric attributes of a body.
fn uniforms(op: &OpRef, attrs: &[Attr]) -> Vec<f64> {
    let is_number = |(a, _): &(&crate::op::Attribute, &Attr)| a.kind == AttrKind::Float;
    let value = |v: &Attr| if let Attr::Float(v) = v { *v } else { f64::NAN };
    op.attrs.iter().zip(attrs).filter(is_number).map(|(_, v)| value(v)).collect()
}

/// The elements of every input, broadcast to the shape of the output. Those of an absent input have no effect.
fn elements(sample: &Sample, output: &Tensor) -> Result<Vec<Vec<f64>>> {
    let read = |t: &Option<Tensor>| match t {
        Some(t) => numbers(&t.detach().broadcast_view(output.shape())),
        None => Ok(vec![0.0; output.numel()]),
    };
    sample.inputs.iter().map(read).collect()
}

/// Runs a program at numbers and over memory, which must agree bit by bit. Booleans are 0 and 1.
fn run(program: &Program, inputs: &[Vec<f64>], uniforms: &[f64]) -> Result<Vec<Vec<f64>>> {
    let n = inputs.first().map_or(0, Vec::len);
    let mut memory = vec![vec![0.0_f64; n]; program.outputs().len()];
    let sources: Vec<*const f64> = inputs.iter().map(|x| x.as_ptr()).collect();
    let places: Vec<*mut u8> = memory.iter_mut().map(|y| y.as_mut_ptr().cast()).collect();
    // SAFETY: the program was verified. Each input and output has n elements, and a bool is not larger than an element.
    unsafe { program.run(n, &sources, uniforms, &places) }.map_err(|e| Error::runtime(e.to_string()))?;
    let mut outputs = vec![Vec::with_capacity(n); memory.len()];
    for i in 0..n {
        let x: Vec<f64> = inputs.iter().map(|x| x[i]).collect();
        let values = program.at(&x, uniforms).ok_or_else(|| Error::runtime("the program does not support float64"))?;
        for ((value, place), output) in values.iter().zip(&places).zip(&mut outputs) {
            // SAFETY: the run wrote n numbers or booleans to this output.
            let (number, tiled) = unsafe {
                match value.number() {
                    Some(y) => (y, place.cast::<f64>().add(i).read()),
                    None => (f64::from(u8::from(value.mask() == Some(true))), f64::from(place.add(i).read())),
                }
            };
            if number.to_bits() != tiled.to_bits() && !(number.is_nan() && tiled.is_nan()) {
                return Err(Error::runtime(format!(
                    "the program returns {number:?} for numbers, but {tiled:?} over memory: {program}"
                )));
            }
            output.push(number);
        }
    }
    Ok(outputs)
}
