//! Checks of lazy mode: a postponed call computes what the call computes.

use super::gradients::{checked, has_gradient};
use super::graphs::{function, tolerance, with_gradients};
use super::sample::Sample;
use super::values::close;
use crate::error::{Error, Result};
use crate::lazy::Lazy;
use crate::op::{OpName, OpRef};
use crate::random::manual_seed;
use crate::tensor::Tensor;

static NEGATIVE: OpName = OpName::new("negative");

/// A postponed call, with calls before and after it, must compute the same bits as the op, and so must its gradient.
pub fn postponed_is_the_op(op: &OpRef, sample: &Sample) -> Result<()> {
    // A program may not link the built-in ops.
    if NEGATIVE.get().is_err() || sample.inputs.iter().flatten().any(|t| t.expect_cpu().is_err()) {
        return Ok(());
    }
    compare(op, sample, &[])?;
    let which = checked(op, sample);
    if has_gradient(op) && !which.is_empty() { compare(op, sample, &which) } else { Ok(()) }
}

fn compare(op: &OpRef, sample: &Sample, which: &[usize]) -> Result<()> {
    let run = || -> Result<Vec<Tensor>> {
        manual_seed(0);
        // Postponed inputs.
        let twice = |t: &Tensor| NEGATIVE.call(&[(&NEGATIVE.call(&[t.into()], &[])?).into()], &[]);
        let inputs = sample.map(|i, t| match t.dtype().is_differentiable() {
            true if which.contains(&i) => twice(t)?.detach().with_requires_grad(),
            true => twice(t),
            false => t.copied(),
        })?;
        function(op, &inputs).and_then(|results| with_gradients(&inputs.inputs, which, results))
    };
    let Ok(expected) = run() else { return Ok(()) };
    let got = {
        let _lazy = Lazy::new();
        run()?
    };
    if expected.len() != got.len() {
        let (got, expected) = (got.len(), expected.len());
        return Err(Error::runtime(format!("lazy mode gives {got} tensors, expected {expected}")));
    }
    for (k, (a, b)) in expected.iter().zip(&got).enumerate() {
        b.expect_cpu()?;
        if !close(a, b, tolerance(op))? || a.strides() != b.strides() {
            return Err(Error::runtime(format!("lazy mode computes another tensor {k}: expected {a}, got {b}")));
        }
    }
    Ok(())
}
