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
type Function<'a> = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'a;

/// Compares the gradient of `f` at `inputs` with central differences, for pseudorandom cotangents. Only float64 and complex128
/// inputs are checked. The error names the input, the element and both numbers.
/// for pseudorandom cotangents; the error says which input, which element, and both numbers.
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
    order(1, f, inputs, options)
}

/// Compares the derivative of the given order, which is the gradient of `f`, and those of higher orders.
fn order(number: usize, f: &Function<'_>, inputs: &[Tensor], options: GradCheck) -> Result<()> {
    if number > options.orders {
        return Ok(());
    }
    first_order(f, inputs, options).map_err(|e| match number {
        1 => e.context("gradient"),
        2 => e.context("second derivative"),
        _ => e.context(format!("derivative of order {number}")),
    })?;
    let differentiable: Vec<usize> = (0..inputs.len()).filter(|i| is_checked(&inputs[*i])).collect();
    let gradient = |inputs: &[Tensor]| {
        let _on = EnableGrad::new();
        let leaves = leaves(inputs)?;
        let outputs: Vec<Tensor> = f(&leaves)?.into_iter().filter(|t| t.dtype().is_differentiable()).collect();
        gradients(&outputs, &leaves, &differentiable, true)
    };
    order(number + 1, &gradient, inputs, options)
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

fn gradients(outputs: &[Tensor], inputs: &[Tensor], which: &[usize], create_graph: bool) -> Result<Vec<Tensor>> {
    let recorded: Vec<Tensor> = outputs.iter().filter(|t| t.requires_grad()).cloned().collect();
    let wanted: Vec<Tensor> = which.iter().map(|i| inputs[*i].clone()).collect();
    if recorded.is_empty() {
        return wanted.iter().map(|t| Tensor::zeros(t.shape().clone(), t.dtype(), t.device())).collect();
    }
    let cotangents: Vec<Option<Tensor>> =
        recorded.iter().enumerate().map(|(k, t)| cotangent(t, k).map(Some)).collect::<Result<_>>()?;
    let options = Options { retain_graph: create_graph, create_graph };
    let found = grad(&recorded, &wanted, &cotangents, options)?;
    found
        .into_iter()
        .zip(&wanted)
        .map(|(g, t)| g.map_or_else(|| Tensor::zeros(t.shape().clone(), t.dtype(), t.device()), Ok))
        .collect()
}

fn first_order(f: &Function<'_>, inputs: &[Tensor], options: GradCheck) -> Result<()> {
    let which: Vec<usize> = (0..inputs.len()).filter(|i| is_checked(&inputs[*i])).collect();
    let analytic = {
        let _on = EnableGrad::new();
        let leaves = leaves(inputs)?;
        let outputs: Vec<Tensor> = f(&leaves)?.into_iter().filter(|t| t.dtype().is_differentiable()).collect();
        let values = outputs.iter().map(numbers).collect::<Result<Vec<_>>>()?;
        if values.iter().flatten().any(|v| !v.is_finite()) {
            return Ok(()); // Nothing to compare with outside the domain.
        }
        gradients(&outputs, &leaves, &which, false)?
    };
    // `f` may differentiate internally, which requires recording. So there is no NoGrad here.
    let objective = |inputs: &[Tensor]| -> Result<f64> {
        let outputs = f(inputs)?;
        let mut total = 0.0;
        for (k, t) in outputs.iter().filter(|t| t.dtype().is_differentiable()).enumerate() {
            let _quiet = NoGrad::new();
            let weights = numbers(&cotangent(t, k)?)?;
            total += numbers(&t.detach())?.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>();
        }
        Ok(total)
    };
    for (gradient, input) in analytic.iter().zip(&which) {
        let base = numbers(&inputs[*input])?;
        let gradient = numbers(&gradient.detach())?;
        if gradient.len() != base.len() {
            return Err(Error::runtime(format!(
                "for input {input}, it has {}, expected {}",
                counted(gradient.len(), "element"),
                base.len()
            )));
        }
        for i in 0..base.len() {
            let h = options.step * base[i].abs().max(1.0);
            let at = |value: f64| -> Result<f64> {
                let mut moved = base.clone();
                moved[i] = value;
                let mut inputs = inputs.to_vec();
                inputs[*input] = tensor_like(&inputs[*input], moved)?;
                objective(&inputs)
            };
            let numeric = (at(base[i] + h)? - at(base[i] - h)?) / (2.0 * h);
            let close = (gradient[i] - numeric).abs() <= options.atol + options.rtol * numeric.abs();
            if !close && numeric.is_finite() {
                return Err(Error::runtime(format!(
                    "for input {input}, element {i} (value {}), it is {}, but finite differences give {numeric}",
                    base[i], gradient[i]
                )));
            }
        }
    }
    Ok(())
}
