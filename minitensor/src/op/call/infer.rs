//! [`infer`]: a call without the computation.

use crate::attr::Attr;
use crate::error::Result;
use crate::op::call::{Arg, Outputs};
use crate::op::def::OpRef;
use crate::op::dispatch;
use crate::tensor::{Device, Tensor};

/// The outputs of a call as tensors on [`Device::Meta`], without computing them.
pub fn infer(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr]) -> Result<Vec<Tensor>> {
    #[cfg(feature = "engine")]
    let _quiet = crate::autograd::NoGrad::new();
    let mut metas = Vec::new();
    for arg in args {
        metas.push(match arg {
            Arg::Tensor(t) => Some(Tensor::empty(t.shape().clone(), t.dtype(), Device::Meta)?),
            _ => None,
        });
    }
    let args: Vec<Arg<'_>> =
        args.iter().zip(&metas).map(|(arg, meta)| meta.as_ref().map_or(*arg, Arg::Tensor)).collect();
    dispatch(op, &args, attrs).map(Outputs::into_vec)
}
