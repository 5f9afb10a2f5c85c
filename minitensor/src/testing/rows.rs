//! Compares the program of a row op with its compiled passes.

use minitensor_kernels::program::{Program, ScalarValue, Variable};

use super::layouts::results;
use super::programs::{in_order_of_results, program, verified};
use super::sample::Sample;
use super::values::numbers;
use crate::attr::{Attr, AttrKind};
use crate::autograd::{Options, grad};
use crate::error::{Error, Result};
use crate::op::{Backward, CoreShapes, DTypeRule, Input, OpRef};
use crate::tensor::Tensor;

/// Compares the program, run row by row at numbers, with the compiled passes. Compares its gradient with the compiled gradient.
pub fn program_is_the_body(op: &OpRef, rule: &CoreShapes, sample: &Sample) -> Result<()> {
    let mut sample = sample.clone();
    if let Some(axis) = op.axis {
        sample.attrs[axis.attr as usize] = if axis.many { vec![-1i64].into() } else { (-1i64).into() };
    }
    let Some(program) = program(op, &sample)? else { return Ok(()) };
    let order = in_order_of_results(op);
    let stored = results(op, &sample.copied()?)?;
    let compiled: Vec<Vec<f64>> = stored.iter().map(numbers).collect::<Result<_>>()?;
    let rows = Rows::of(op, rule, &sample)?;
    for row in 0..rows.count {
        let values = rows.run(&program.giving(&order), row, &[], &[])?;
        for (((values, compiled), stored), k) in values.iter().zip(&compiled).zip(&stored).zip(&order) {
            // An output of integers stores converted numbers.
            let values = match stored.dtype() {
                dtype if dtype.is_integer() => {
                    &numbers(&Tensor::from_vec(values.clone(), [values.len()])?.cast(dtype)?)?
                }
                _ => values,
            };
            close(
                values,
                slice(compiled, row, rows.count),
                rule.outputs[*k].core.is_empty(),
                || format!("output {k}"),
                &program,
            )?;
        }
    }
    if !matches!(op.backward, Backward::Derived(_)) || op.inputs.iter().any(|i| i.mutated) {
        return Ok(());
    }
    let wrt: Vec<usize> = (0..op.inputs.len()).filter(|i| is_float(&op.inputs[*i])).collect();
    let mut leaves = sample.map(|_, t| t.copied())?;
    for i in &wrt {
        leaves.inputs[*i] = leaves.inputs[*i].take().map(Tensor::with_requires_grad).transpose()?;
    }
    let outputs = leaves.call(op)?;
    let differentiable: Vec<usize> = op.cotangents().collect();
    let program = program.giving(&differentiable);
    let outputs: Vec<Tensor> = differentiable.iter().map(|k| outputs[*k].clone()).collect();
    let cotangents: Vec<Tensor> =
        outputs.iter().enumerate().map(|(k, t)| super::gradcheck::cotangent(t, k)).collect::<Result<_>>()?;
    let given: Vec<Option<Tensor>> = cotangents.iter().cloned().map(Some).collect();
    let wanted: Vec<Tensor> = wrt.iter().filter_map(|i| leaves.inputs[*i].clone()).collect();
    let compiled = grad(&outputs, &wanted, &given, Options::default())?;
    let cotangents: Vec<Vec<f64>> = cotangents.iter().map(numbers).collect::<Result<_>>()?;
    let gives: Vec<bool> = differentiable.iter().map(|k| !rule.outputs[*k].core.is_empty()).collect();
    let arguments = op.program_arguments();
    let place = |all: &[usize], i: usize| all.iter().position(|other| *other == i).unwrap_or_default();
    let variables: Vec<Variable> = wrt
        .iter()
        .map(|i| match rule.inputs[*i].core.is_empty() {
            true => Variable::Uniform(place(&arguments.numbers, *i)),
            false => Variable::Input(place(&arguments.inputs, *i)),
        })
        .collect();
    let present: Vec<usize> = wrt.iter().copied().filter(|i| sample.inputs[*i].is_some()).collect();
    let Some(vjp) = program.vjp_of_rows(&gives, &variables) else {
        return Err(Error::runtime(format!("the program has no gradient: {program}")));
    };
    let Some(vjp) = verified(vjp)? else { return Ok(()) };
    let mut sums: Vec<Vec<f64>> = vec![Vec::new(); wrt.len()];
    for row in 0..rows.count {
        let of = |k: usize| slice(&cotangents[k], row, rows.count).to_vec();
        let pick = |along: bool| (0..gives.len()).filter(|k| gives[*k] == along).map(of).collect::<Vec<_>>();
        let values = rows.run(&vjp, row, &pick(true), &pick(false))?;
        for ((sum, i), mut values) in sums.iter_mut().zip(&wrt).zip(values) {
            if rule.inputs[*i].core.is_empty() {
                values.truncate(1);
            }
            if rule.inputs[*i].batch || sum.is_empty() {
                sum.extend(values);
            } else {
                sum.iter_mut().zip(values).for_each(|(sum, v)| *sum += v);
            }
        }
    }
    for (i, compiled) in present.iter().zip(compiled) {
        let Some(compiled) = compiled else { continue };
        let at = wrt.iter().position(|w| w == i).unwrap_or_default();
        close(&sums[at], &numbers(&compiled)?, false, || format!("gradient of '{}'", op.inputs[*i].name), &vjp)?;
    }
    Ok(())
}

fn is_float(input: &Input) -> bool {
    matches!(input.dtype, DTypeRule::Generic(_))
}

/// The values of one row.
fn slice(values: &[f64], row: usize, rows: usize) -> &[f64] {
    let n = values.len() / rows.max(1);
    &values[row * n..(row + 1) * n]
}

fn close(got: &[f64], want: &[f64], is_number: bool, what: impl Fn() -> String, program: &Program) -> Result<()> {
    let got = if is_number { &got[..want.len()] } else { got };
    let is_close = |(a, b): (&f64, &f64)| {
        (a - b).abs() <= 1e-9 * a.abs().max(1e-3) || a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
    };
    match got.len() == want.len() && got.iter().zip(want).all(is_close) {
        true => Ok(()),
        false => Err(Error::runtime(format!(
            "the {} of the program is {got:?}, but that of the compiled loop is {want:?}: {program}",
            what()
        ))),
    }
}

/// The arguments of a program, row by row.
struct Rows {
    count: usize,
    n: usize,
    inputs: Vec<(Vec<f64>, bool)>,
    uniforms: Vec<(Vec<f64>, bool)>,
}

impl Rows {
    fn of(op: &OpRef, rule: &CoreShapes, sample: &Sample) -> Result<Rows> {
        let batched = |i: usize| rule.inputs[i].batch && sample.inputs[i].is_some();
        let first = (0..op.inputs.len()).find(|i| batched(*i) && !rule.inputs[*i].core.is_empty());
        let shape = first.and_then(|i| sample.inputs[i].as_ref()).map(|t| t.shape().to_vec()).unwrap_or_default();
        let (n, count) = (shape.last().copied().unwrap_or(1), shape.iter().rev().skip(1).product());
        let values = |i: usize| -> Result<(Vec<f64>, bool)> {
            let along = !rule.inputs[i].core.is_empty();
            match &sample.inputs[i] {
                Some(t) => Ok((numbers(t)?, rule.inputs[i].batch)),
                None => Ok((vec![0.0; if along { n } else { 1 }], false)),
            }
        };
        let (mut inputs, mut uniforms, mut positions) = (vec![], vec![], vec![]);
        for (i, input) in op.inputs.iter().enumerate() {
            match (rule.inputs[i].core.is_empty(), is_float(input)) {
                (false, _) => inputs.push(values(i)?),
                (true, true) => uniforms.push(values(i)?),
                (true, false) => positions.push(values(i)?),
            }
        }
        uniforms.extend(positions);
        for (_, value) in op.attrs.iter().zip(&sample.attrs).filter(|(a, _)| a.kind == AttrKind::Float) {
            uniforms.push((vec![if let Attr::Float(v) = value { *v } else { f64::NAN }], false));
        }
        Ok(Rows { count, n, inputs, uniforms })
    }

    fn run(&self, program: &Program, row: usize, along: &[Vec<f64>], numbers: &[Vec<f64>]) -> Result<Vec<Vec<f64>>> {
        let of = |(values, batched): &(Vec<f64>, bool)| {
            if *batched { slice(values, row, self.count).to_vec() } else { values.clone() }
        };
        let inputs: Vec<Vec<f64>> = along.iter().cloned().chain(self.inputs.iter().map(of)).collect();
        let inputs: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
        let uniforms: Vec<f64> = numbers.iter().cloned().chain(self.uniforms.iter().map(of)).map(|v| v[0]).collect();
        let values = program.at_row(&inputs, &uniforms, self.n);
        let values =
            values.ok_or_else(|| Error::runtime(format!("the program does not support float64: {program}")))?;
        let number = |value: &ScalarValue<f64>| match value {
            ScalarValue::Number(x) => *x,
            ScalarValue::Mask(truth) => f64::from(u8::from(*truth)),
        };
        Ok(values.iter().map(|y| y.iter().map(number).collect()).collect())
    }
}
