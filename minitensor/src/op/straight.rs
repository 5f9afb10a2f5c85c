//! The short way of the most common call: an element op over contiguous tensors of one shape and dtype, few enough for
//! one thread. It does what [`dispatch`](super::dispatch) does for them, without the room for everything else.

use super::call::Arg;
use super::def::{Arity, Body, DTypeRule, OpRef, Role};
use super::dispatch::Produced;
use super::launch::GRAIN;
use super::record;
use super::shape_rule::Bindings;
use crate::attr::Attr;
use crate::autograd::is_grad_enabled;
use crate::error::Result;
use crate::tensor::{Device, Tensor};

/// Calls of more inputs or outputs go the long way.
const FEW: usize = 4;

/// The outputs of such a call; `None` for any other, also for one that will fail: the long way says why.
pub fn call(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr]) -> Option<Result<Produced>> {
    let Body::Element(body) = &op.body else { return None };
    let (Some(Arg::Tensor(first)), [generic]) = (args.first(), op.generics.as_ref()) else { return None };
    let (dtype, n) = (first.dtype(), first.numel());
    let fits = args.len() == op.inputs.len() && args.len() <= FEW && op.outputs.len() <= FEW && n > 0 && n <= GRAIN;
    if !fits || dtype.compute() != dtype || !generic.dtypes.contains(dtype) || first.device() != Device::Cpu {
        return None;
    }
    let (mut inputs, mut ins) = ([None; FEW], [std::ptr::null(); FEW]);
    for (i, (arg, input)) in args.iter().zip(op.inputs.iter()).enumerate() {
        let Arg::Tensor(t) = arg else { return None };
        let plain = !input.mutated && input.arity == Arity::One && input.dtype == DTypeRule::Generic(0);
        let alike = t.dtype() == dtype && t.shape() == first.shape() && t.device() == Device::Cpu && t.is_contiguous();
        if !plain || !alike {
            return None;
        }
        (inputs[i], ins[i]) = (Some(*t), t.data_ptr().cast_const());
    }
    let kernel = (body.kernel)(&[dtype])?;
    if op.outputs.iter().any(|o| o.role != Role::Returned || matches!(o.dtype, DTypeRule::Attr(_) | DTypeRule::Any)) {
        return None;
    }
    Some((|| {
        op.check_predicates(&Bindings::default(), attrs)?;
        let inputs = &inputs[..args.len()];
        let recorded = is_grad_enabled() && inputs.iter().flatten().any(|t| t.requires_grad());
        let recording = if recorded { record::prepare(op, inputs)? } else { None };
        let (mut outputs, mut outs) = (Produced::new(), [std::ptr::null_mut(); FEW]);
        for (k, output) in op.outputs.iter().enumerate() {
            let dtype = if let DTypeRule::Fixed(d) = output.dtype { d } else { dtype };
            let t = Tensor::empty_like(first, dtype)?;
            outs[k] = t.data_ptr();
            outputs.push(Some(t));
        }
        // SAFETY: every tensor is contiguous, has n elements and the dtype of the kernel, which computes in no other.
        unsafe { kernel(attrs, n, &ins[..args.len()], &outs[..outputs.len()])? };
        if let Some(recording) = recording {
            recording.record(op, inputs, attrs, &mut outputs);
        }
        Ok(outputs)
    })())
}
