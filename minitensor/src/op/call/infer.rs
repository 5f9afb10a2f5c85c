//! [`infer`], [`infer_dtypes`] and [`number_dtypes`]: calls without the computation.

use crate::attr::Attr;
#[cfg(feature = "engine")]
use crate::dtype::DType;
use crate::error::Result;
use crate::op::call::{Arg, Outputs};
use crate::op::def::OpRef;
#[cfg(feature = "engine")]
use crate::op::def::Role;
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

/// The dtypes of the tensors that the numbers among the arguments become; `None` for the other arguments.
///
/// # Errors
/// If the op does not take the dtypes of the tensors.
#[cfg(feature = "engine")]
pub fn number_dtypes(op: &OpRef, args: &[Arg<'_>]) -> Result<Vec<Option<DType>>> {
    let resolved = op.resolve_dtypes(args, &[])?;
    let dtype = |(i, arg): (usize, &Arg<'_>)| match arg {
        Arg::Number(number) => Some(op.number_dtype(i, *number, &resolved)),
        _ => None,
    };
    Ok(args.iter().enumerate().map(dtype).collect())
}

/// The dtypes of the results of a call, which do not depend on shapes.
///
/// # Errors
/// If the op does not take the dtypes, or if its rules do not determine the dtypes of its results: those of an op over whole
/// tensors may be those of the ops that it calls.
#[cfg(feature = "engine")]
pub fn infer_dtypes(op: &OpRef, dtypes: &[Option<DType>], attrs: &[Attr]) -> Result<Vec<DType>> {
    let meta = |dtype: &DType| Tensor::empty([], *dtype, Device::Meta);
    let metas = dtypes.iter().map(|d| d.as_ref().map(meta).transpose()).collect::<Result<Vec<_>>>()?;
    let args: Vec<Arg<'_>> = metas.iter().map(|t| t.as_ref().map_or(Arg::None, Arg::Tensor)).collect();
    let resolved = op.resolve_dtypes(&args, attrs)?;
    let returned = op.outputs.iter().filter(|o| o.role == Role::Returned);
    returned.map(|o| op.output_dtype_of(o.dtype, &resolved, attrs)).collect()
}
