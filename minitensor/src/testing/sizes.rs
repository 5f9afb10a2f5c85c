//! Core dimensions of size 1 and 0.

use super::gradcheck::cotangent;
use super::gradients::has_gradient;
use super::layouts::{fail, results};
use super::opcheck::{quietly, with};
use super::sample::{Sample, dim_names, dim_size};
use super::values::Random;
use crate::autograd::{Options, grad};
use crate::dtype::{DType, Kind};
use crate::error::Result;
use crate::op::{CoreShapes, OpRef, ShapeRule};
use crate::tensor::Tensor;

/// The size of the other dimensions while one is small.
const USUAL: usize = 3;

/// Calls the op and its gradient with small core dimensions: each alone, and all together. The op may reject them, but must not panic.
pub fn small_sizes_do_not_panic(op: &OpRef, sample: &Sample) -> Result<()> {
    let ShapeRule::Core(rule) = &op.shape else { return Ok(()) };
    let names = dim_names(rule);
    for small in [1, 0] {
        let alone = |k: usize| (0..names.len()).map(|i| if i == k { small } else { USUAL }).collect::<Vec<_>>();
        for sizes in (0..names.len()).map(alone).chain([vec![small; names.len()]]) {
            let Some(sample) = of_sizes(rule, sample, &names, &sizes)? else { continue };
            let call = quietly(|| results(op, &sample.copied()?).map(drop));
            // An error of the call is an answer. Then there is no gradient either.
            let (what, outcome) = match call {
                Ok(()) if has_gradient(op) => ("gradient", quietly(|| gradients(op, &sample))),
                call => ("op", call),
            };
            let Some(panic) = outcome.as_ref().err().and_then(|e| e.message().split_once("panicked: ")) else {
                continue;
            };
            let name = names.iter().zip(&sizes).find_map(|(name, size)| (*size == small).then_some(name));
            let all: Vec<String> = names.iter().zip(&sizes).map(|(name, size)| format!("{name} = {size}")).collect();
            return fail(format!(
                "the {what} panics for {}: {}; compute this size, or exclude it by a condition in the shape clause, such as \
                 `where {} > {small}`{}",
                all.join(", "),
                panic.1,
                name.map_or("n", |name| name),
                with(op, &sample)
            ));
        }
    }
    Ok(())
}

fn gradients(op: &OpRef, sample: &Sample) -> Result<()> {
    let leaves =
        sample.map(|_, t| if t.dtype() == DType::F64 { t.copied()?.with_requires_grad() } else { t.copied() })?;
    let outputs: Vec<Tensor> = leaves.call(op)?.into_iter().filter(Tensor::requires_grad).collect();
    let cotangents = outputs.iter().enumerate().map(|(k, t)| cotangent(t, k).map(Some)).collect::<Result<Vec<_>>>()?;
    let leaves: Vec<Tensor> = leaves.inputs.into_iter().flatten().filter(Tensor::requires_grad).collect();
    grad(&outputs, &leaves, &cotangents, Options::default()).map(drop)
}

/// A sample with these sizes of the named dimensions. Integers, which may be positions, are 0. `None` if the sizes do not fit the rule.
fn of_sizes(rule: &CoreShapes, sample: &Sample, names: &[&str], sizes: &[usize]) -> Result<Option<Sample>> {
    let mut random = Random::new(1);
    let mut inputs = Vec::with_capacity(sample.inputs.len());
    for (i, t) in sample.inputs.iter().enumerate() {
        let dims = rule.input(i);
        let size = |name: &str| names.iter().position(|n| *n == name).map(|at| sizes[at]);
        let core = dims.core.iter().map(|dim| dim_size(dim, &sample.attrs, &size));
        let Some(core) = core.collect::<Option<Vec<usize>>>() else { return Ok(None) };
        let shape: Vec<usize> = dims.batch.then_some(2).into_iter().chain(core).collect();
        let made = |t: &Tensor| match t.dtype().kind() {
            Kind::Signed | Kind::Unsigned => Tensor::zeros(shape.clone(), t.dtype(), t.device()),
            _ => random.tensor(&shape, t.dtype(), 0.1, 0.9)?.to_device(t.device()),
        };
        inputs.push(t.as_ref().map(made).transpose()?);
    }
    Ok(Some(Sample { inputs, attrs: sample.attrs.clone() }))
}
