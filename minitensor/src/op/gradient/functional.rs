//! [`gradient`]: the gradients of a call as a function of its tensors, for frameworks that keep the graph themselves.

use crate::attr::Attr;
use crate::autograd::{EnableGrad, NoGrad, Options, grad};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result, counted};
use crate::op::call::Arg;
use crate::op::def::{Body, DTypeRule, OpDef, OpRef, Role, ShapeRule};
use crate::op::gradient::{pullback, saves_output};
use crate::random::Forbid;
use crate::tensor::Tensor;

/// The gradients of an op of the order `wrt.len()`, as a function of its tensors.
///
/// The function of order 0 is the op. The function of order k takes a cotangent for each result of the function of order k−1,
/// then the tensors of that function. `wrt[k - 1]` selects the tensors of the latter whose gradients it returns. An absent
/// cotangent is zero. Attributes are complete, as [`bind`](crate::op::bind) makes them.
///
/// `known` has the results of the call that the caller kept, or is empty. The op runs again only if its gradient reads another
/// output. [`results_read`] tells which results are worth keeping.
///
/// # Errors
/// If the number of tensors is wrong, a selected tensor is absent or has a dtype without derivatives, the op has no gradient, or
/// its call must run again and draws random numbers.
pub fn gradient(
    op: &OpRef,
    attrs: &[Attr],
    wrt: &[&[bool]],
    tensors: &[Option<Tensor>],
    known: &[Option<Tensor>],
) -> Result<Vec<Tensor>> {
    if let Some(input) = op.inputs.iter().find(|input| input.mutated) {
        return Err(Error::value(format!(
            "op '{}' changes '{}' in place, so it cannot run again to compute its gradient",
            op.name, input.name
        )));
    }
    let _mode = NoGrad::new();
    let _same = Forbid::new(|| {
        Error::runtime(
            "its gradient runs the op again, but the op draws random numbers, which would differ; use an op that takes a key, \
             such as random::dropout",
        )
    });
    let tensors: Vec<Option<Tensor>> = tensors.iter().map(|t| t.as_ref().map(Tensor::detach)).collect();
    Order { op, attrs, wrt, known }.results(&tensors)
}

/// For each result of an op, whether its gradient reads it, in a call with all inputs in `f32` and the default attributes.
pub fn results_read(op: &OpDef) -> Vec<bool> {
    let attrs: Option<Vec<Attr>> = op.attrs.iter().map(|a| a.default.clone()).collect();
    let dtypes = op.inputs.iter().map(|input| match input.dtype {
        DTypeRule::Fixed(dtype) => dtype,
        _ => DType::F32,
    });
    let needs = |i: usize| op.is_differentiable(op.inputs[i].dtype);
    let pullback = attrs.and_then(|attrs| pullback(op, &attrs, dtypes.map(Some), needs));
    let results = (0..op.outputs.len()).filter(|k| op.outputs[*k].role == Role::Returned);
    results.map(|k| !op.gives_list() && saves_output(op, pullback.as_deref(), k)).collect()
}

/// The function of one order.
struct Order<'a> {
    op: &'a OpRef,
    attrs: &'a [Attr],
    wrt: &'a [&'a [bool]],
    known: &'a [Option<Tensor>],
}

impl Order<'_> {
    /// The results. They are recorded if gradients are enabled.
    fn results(&self, tensors: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
        let Some((wrt, lower)) = self.wrt.split_last() else {
            let args: Vec<Arg<'_>> = tensors.iter().map(|t| t.as_ref().map_or(Arg::None, Arg::Tensor)).collect();
            return match dispatch::record_only(self.op, &args, self.attrs, self.known)? {
                Some(recorded) => Ok(recorded),
                None => Ok(dispatch::dispatch(self.op, &args, self.attrs)?.into_vec()),
            };
        };
        let Some(first) = tensors.len().checked_sub(wrt.len()) else {
            return Err(self.wrong_count(wrt.len(), tensors.len()));
        };
        let (cotangents, tensors) = tensors.split_at(first);
        let is_recorded = crate::autograd::is_grad_enabled();
        if lower.is_empty()
            && !is_recorded
            && let Some(found) = self.of_equal_shapes(wrt, cotangents, tensors)?
        {
            return Ok(found);
        }
        let mut given = Vec::with_capacity(tensors.len());
        let mut wanted = Vec::new();
        for (i, t) in tensors.iter().enumerate() {
            let Some(t) = t else {
                given.push(None);
                continue;
            };
            // A tensor that is part of a graph of a higher order stays in it.
            let leaf = if t.requires_grad() { t.clone() } else { t.detach() };
            if wrt[i] {
                leaf.set_requires_grad(true).map_err(|e| e.context(format!("op '{}'", self.op.name)))?;
                wanted.push(leaf.clone());
            }
            given.push(Some(leaf));
        }
        if wanted.len() != wrt.iter().filter(|wanted| **wanted).count() {
            return Err(Error::value(format!("op '{}': a gradient of an absent tensor is wanted", self.op.name)));
        }
        let outputs = {
            let _on = EnableGrad::new();
            Order { wrt: lower, ..*self }.results(&given)?
        };
        if outputs.len() != cotangents.len() {
            return Err(self.wrong_count(outputs.len() + wrt.len(), first + wrt.len()));
        }
        // Results that do not depend on a wanted tensor contribute nothing.
        let pairs = outputs.into_iter().zip(cotangents).filter(|(output, g)| g.is_some() && output.requires_grad());
        let (outputs, cotangents): (Vec<_>, Vec<_>) = pairs.map(|(output, g)| (output, g.clone())).unzip();
        let options = Options { retain_graph: false, create_graph: is_recorded };
        let found = grad(&outputs, &wanted, &cotangents, options)?;
        let zero = |t: &Tensor| Tensor::full(t.shape().clone(), 0.0.into(), t.dtype(), t.device());
        found.into_iter().zip(&wanted).map(|(g, t)| g.map_or_else(|| zero(t), Ok)).collect()
    }

    /// The gradients of an element op whose tensors have one shape and dtype: its vector-Jacobian product returns them as they are, so
    /// nothing needs to be recorded. `None` for another call.
    fn of_equal_shapes(
        &self,
        wrt: &[bool],
        cotangents: &[Option<Tensor>],
        tensors: &[Option<Tensor>],
    ) -> Result<Option<Vec<Tensor>>> {
        let op: &OpDef = self.op;
        if !matches!((&op.shape, &op.body), (ShapeRule::Broadcast, Body::Element(_))) || op.generics.len() != 1 {
            return Ok(None);
        }
        let Some(Some(first)) = cotangents.first() else { return Ok(None) };
        let is_alike = |t: &Tensor, dtype: DTypeRule| {
            let is_stored = t.dtype() == first.dtype() || matches!(dtype, DTypeRule::Fixed(d) if d == t.dtype());
            is_stored && t.shape() == first.shape() && t.device() == first.device()
        };
        let of = |t: &Option<Tensor>, dtype| t.as_ref().is_none_or(|t| is_alike(t, dtype));
        let are_alike = first.dtype().is_differentiable()
            && cotangents.len() == op.outputs.len()
            && tensors.len() == op.inputs.len()
            && cotangents.iter().zip(op.outputs.iter()).all(|(g, o)| g.is_some() && of(g, o.dtype))
            && tensors.iter().zip(op.inputs.iter()).all(|(t, i)| of(t, i.dtype))
            && tensors
                .iter()
                .zip(wrt)
                .all(|(t, is_wanted)| !is_wanted || t.as_ref().is_some_and(|t| t.dtype() == first.dtype()));
        if !are_alike {
            return Ok(None);
        }
        let dtypes = tensors.iter().map(|t| t.as_ref().map(Tensor::dtype));
        let Some(pullback) = pullback(op, self.attrs, dtypes, |i| wrt[i]) else { return Ok(None) };
        let found = pullback.of_tensors(op, self.attrs, tensors, self.known, cotangents)?;
        Ok(found.filter(|found| found.len() == wrt.iter().filter(|is_wanted| **is_wanted).count()))
    }

    fn wrong_count(&self, expected: usize, got: usize) -> Error {
        let (order, expected) = (self.wrt.len(), counted(expected, "tensor"));
        Error::value(format!("op '{}': its gradient of order {order} takes {expected}, got {got}", self.op.name))
    }
}
