//! Gradients against central differences.

use super::values::{numbers, tensor_like};
use crate::autograd::{EnableGrad, NoGrad, Options, grad};
use crate::error::{Error, Result, counted};
use crate::tensor::Tensor;

/// Settings of [`gradcheck`].
#[derive(Clone, Copy, Debug)]
pub struct GradCheck {
    /// Relative step size of the differences.
    pub step: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
    /// The highest order of derivative to check: 1 for the gradient, 2 for the gradient of the gradient.
    pub orders: usize,
}

impl Default for GradCheck {
    fn default() -> Self {
        GradCheck { step: 1e-5, atol: 1e-6, rtol: 1e-4, orders: 2 }
    }
}

/// A function of tensors.
pub(super) type Function<'a> = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'a;

/// Compares the gradient of `f` at `inputs` with central differences, for pseudorandom cotangents: first of a similar size for all elements
/// of the outputs, then inversely proportional to the derivatives of each element, so that large derivatives do not hide small ones. Only
/// float64 and complex128 inputs are checked. The error names the input, the element and both numbers.
///
/// A complex number counts as two real ones. The gradient of a real number with respect to `x + iy` is its derivative with
/// respect to `x`, plus `i` times its derivative with respect to `y`.
///
/// ```
/// # use minitensor::{CustomOpBuilder, Tensor, testing::{GradCheck, gradcheck}};
/// let x = Tensor::from_vec(vec![1.0, 2.0], [2])?;
/// gradcheck(&|inputs| Ok(vec![inputs[0].clone()]), &[x], GradCheck::default())?;
/// # Ok::<(), minitensor::Error>(())
/// ```
pub fn gradcheck(f: &Function<'_>, inputs: &[Tensor], options: GradCheck) -> Result<()> {
    compare(f, f, inputs, options)
}

/// As [`gradcheck`], but the differences are those of another function, `reference`.
pub(super) fn compare(f: &Function<'_>, reference: &Function<'_>, inputs: &[Tensor], options: GradCheck) -> Result<()> {
    order(1, f, reference, inputs, options)
}

/// Compares the derivative of the given order, which is the gradient of `f`, and those of higher orders.
fn order(
    number: usize,
    f: &Function<'_>,
    reference: &Function<'_>,
    inputs: &[Tensor],
    options: GradCheck,
) -> Result<()> {
    if number > options.orders {
        return Ok(());
    }
    first_order(f, reference, inputs, options).map_err(|e| match number {
        1 => e.context("gradient"),
        2 => e.context("second derivative"),
        _ => e.context(format!("derivative of order {number}")),
    })?;
    let differentiable: Vec<usize> = (0..inputs.len()).filter(|i| is_checked(&inputs[*i])).collect();
    let gradient = |f: &Function<'_>, inputs: &[Tensor]| {
        let _on = EnableGrad::new();
        let leaves = leaves(inputs)?;
        let outputs = differentiable_outputs(f, &leaves)?;
        let weights = weights(&outputs)?;
        gradients(&outputs, &weights, &leaves, &differentiable, Options { retain_graph: true, create_graph: true })
    };
    order(number + 1, &|x: &[Tensor]| gradient(f, x), &|x: &[Tensor]| gradient(reference, x), inputs, options)
}

/// Whether the tensor is checked: differences need double precision.
fn is_checked(t: &Tensor) -> bool {
    matches!(t.dtype(), crate::DType::F64 | crate::DType::C128)
}

/// The same values with `requires_grad` set. A tensor that already has a history is passed on unchanged.
fn leaves(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    inputs
        .iter()
        .map(|t| if is_checked(t) && !t.requires_grad() { t.detach().with_requires_grad() } else { Ok(t.clone()) })
        .collect()
}

/// A pseudorandom cotangent: never 0 or 1, and different for each output and element.
pub(super) fn cotangent(output: &Tensor, index: usize) -> Result<Tensor> {
    let value = |i: usize| 0.4 + ((i * 37 + index * 101 + 11) % 89) as f64 / 89.0;
    let parts = if output.dtype().is_complex() { 2 } else { 1 };
    tensor_like(output, (0..parts * output.numel()).map(value).collect())
}

fn differentiable_outputs(f: &Function<'_>, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    Ok(f(inputs)?.into_iter().filter(|t| t.dtype().is_differentiable()).collect())
}

/// The numbers in all tensors, one after the other.
fn all_numbers(tensors: &[Tensor]) -> Result<Vec<f64>> {
    Ok(tensors.iter().map(numbers).collect::<Result<Vec<_>>>()?.concat())
}

/// The numbers in the pseudorandom cotangents of all outputs.
fn weights(outputs: &[Tensor]) -> Result<Vec<f64>> {
    let cotangents: Vec<Tensor> = outputs.iter().enumerate().map(|(k, t)| cotangent(t, k)).collect::<Result<_>>()?;
    all_numbers(&cotangents)
}

/// The gradients of some inputs, for cotangents that contain these numbers.
fn gradients(
    outputs: &[Tensor],
    mut weights: &[f64],
    inputs: &[Tensor],
    which: &[usize],
    options: Options,
) -> Result<Vec<Tensor>> {
    let (mut recorded, mut cotangents) = (Vec::new(), Vec::new());
    for t in outputs {
        let count = if t.dtype().is_complex() { 2 * t.numel() } else { t.numel() };
        let (own, rest) = weights.split_at(count);
        weights = rest;
        if t.requires_grad() {
            recorded.push(t.clone());
            cotangents.push(Some(tensor_like(t, own.to_vec())?));
        }
    }
    let wanted: Vec<Tensor> = which.iter().map(|i| inputs[*i].clone()).collect();
    let found =
        if recorded.is_empty() { vec![None; wanted.len()] } else { grad(&recorded, &wanted, &cotangents, options)? };
    found
        .into_iter()
        .zip(&wanted)
        .map(|(g, t)| g.map_or_else(|| Tensor::zeros(t.shape().clone(), t.dtype(), t.device()), Ok))
        .collect()
}

/// Central differences of all outputs with respect to one element of an input.
struct Column {
    input: usize,
    element: usize,
    value: f64,
    derivatives: Vec<f64>,
}

impl Column {
    fn new(f: &Function<'_>, inputs: &[Tensor], input: usize, element: usize, step: f64) -> Result<Column> {
        let base = numbers(&inputs[input])?;
        let value = base[element];
        let h = step * value.abs().max(1.0);
        // `f` may differentiate internally, which requires recording. So there is no NoGrad here.
        let at = |value: f64| -> Result<Vec<f64>> {
            let (mut moved, mut inputs) = (base.clone(), inputs.to_vec());
            moved[element] = value;
            inputs[input] = tensor_like(&inputs[input], moved)?;
            let outputs = differentiable_outputs(f, &inputs)?;
            let _quiet = NoGrad::new();
            all_numbers(&outputs)
        };
        let derivatives = at(value + h)?.iter().zip(at(value - h)?).map(|(a, b)| (a - b) / (2.0 * h)).collect();
        Ok(Column { input, element, value, derivatives })
    }

    /// The derivative of the weighted sum of all outputs.
    fn weighted(&self, weights: &[f64]) -> f64 {
        self.derivatives.iter().zip(weights).map(|(d, w)| d * w).sum()
    }

    /// The size of that derivative if nothing cancels.
    fn size(&self, weights: &[f64]) -> f64 {
        self.derivatives.iter().zip(weights).map(|(d, w)| (d * w).abs()).sum()
    }

    fn fail<T>(&self, gradient: f64, numeric: f64) -> Result<T> {
        let Column { input, element, value, .. } = self;
        Err(Error::runtime(format!(
            "for input {input}, element {element} (value {value}), it is {gradient}, but finite differences give {numeric}"
        )))
    }
}

fn first_order(f: &Function<'_>, reference: &Function<'_>, inputs: &[Tensor], options: GradCheck) -> Result<()> {
    let which: Vec<usize> = (0..inputs.len()).filter(|i| is_checked(&inputs[*i])).collect();
    let (leaves, outputs) = {
        let _on = EnableGrad::new();
        let leaves = leaves(inputs)?;
        let outputs = differentiable_outputs(f, &leaves)?;
        (leaves, outputs)
    };
    let values = all_numbers(&outputs)?;
    if values.iter().any(|v| !v.is_finite()) {
        return Ok(()); // Nothing to compare with outside the domain.
    }
    let gradients = |weights: &[f64], retain_graph: bool| -> Result<Vec<Vec<f64>>> {
        let options = Options { retain_graph, create_graph: false };
        gradients(&outputs, weights, &leaves, &which, options)?.iter().map(numbers).collect()
    };
    let weights = weights(&outputs)?;
    let mut columns = Vec::new();
    for (gradient, input) in gradients(&weights, true)?.iter().zip(&which) {
        let count = numbers(&inputs[*input])?.len();
        if gradient.len() != count {
            return Err(Error::runtime(format!(
                "for input {input}, it has {}, expected {count}",
                counted(gradient.len(), "element"),
            )));
        }
        for (element, gradient) in gradient.iter().enumerate() {
            let column = Column::new(reference, inputs, *input, element, options.step)?;
            let numeric = column.weighted(&weights);
            let close = (gradient - numeric).abs() <= options.atol + options.rtol * numeric.abs();
            if !close && numeric.is_finite() {
                return column.fail(*gradient, numeric);
            }
            if columns.len() * values.len() < MOST_DERIVATIVES {
                columns.push(column);
            }
        }
    }
    let weights = scaled(weights, &values, &columns);
    let found = gradients(&weights, false)?.concat();
    for (column, gradient) in columns.iter().zip(found) {
        let numeric = column.weighted(&weights);
        let tolerance = options.atol + options.rtol * column.size(&weights);
        let is_close = |other: f64| (other - numeric).abs() <= tolerance;
        if is_close(gradient) || !numeric.is_finite() {
            continue;
        }
        // Rounding errors may be as large as small derivatives. They change with the step, so both steps must contradict the gradient.
        let other = Column::new(reference, inputs, column.input, column.element, 8.0 * options.step)?;
        let other = other.weighted(&weights);
        if is_close(other) && (other - gradient).abs() > tolerance {
            return column.fail(gradient, numeric).map_err(|e| e.context("with cotangents inverse to the derivatives"));
        }
    }
    Ok(())
}

/// The maximum number of derivatives that are kept for the second comparison: 128 MiB.
const MOST_DERIVATIVES: usize = 1 << 24;

/// Weights for which the largest derivative of each output element has about the same size, unless it is as small as rounding errors.
fn scaled(weights: Vec<f64>, values: &[f64], columns: &[Column]) -> Vec<f64> {
    let largest =
        |k: usize| columns.iter().map(|c| c.derivatives[k].abs()).filter(|d| d.is_finite()).fold(0.0, f64::max);
    let scale = |k: usize| largest(k).max(1e-4).max(1e-5 * values[k].abs());
    weights.into_iter().enumerate().map(|(k, weight)| weight / scale(k)).collect()
}
