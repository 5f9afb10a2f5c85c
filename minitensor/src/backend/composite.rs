//! Runs the bodies of composite ops.

use smallvec::SmallVec;

use super::without_values::WithoutValues;
use crate::autograd::{NoGrad, is_grad_enabled};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::Call;
use crate::op::by_name::names;
use crate::precision::{Wide, is_wide};
use crate::tensor::{Device, Shape, Tensor};

/// The body of a composite op.
type Run<'a> = dyn Fn(&Call<'_>) -> Result<Vec<Tensor>> + 'a;

/// Runs the body of a composite op. If an input is a half float, its parts store `float32`, and the results are rounded to the
/// dtypes that they have otherwise.
pub fn rounded_once(call: &Call<'_>, run: &Run<'_>) -> Result<Vec<Tensor>> {
    let is_half = |t: &&Tensor| t.dtype().compute() != t.dtype() && t.device() != Device::Meta;
    if is_wide() || !call.inputs.iter().flatten().any(is_half) {
        return run(call);
    }
    // A body that reads values has no dtypes without them. It also reports its own errors best.
    let Ok(promised) = metas_of(call, run) else { return run(call) };
    let outputs = {
        let _wide = Wide::new();
        run(call)?
    };
    let rounded = |(t, (_, dtype)): (Tensor, (Shape, DType))| match t.dtype() == dtype || t.dtype() != dtype.compute() {
        true => Ok(t),
        false if t.requires_grad() && is_grad_enabled() => names::ASTYPE.call(&[(&t).into(), dtype.into()], &[]),
        false => t.cast(dtype),
    };
    outputs.into_iter().zip(promised).map(rounded).collect()
}

/// The shapes and dtypes of the results, from a run over tensors without values.
pub fn metas_of(call: &Call<'_>, run: &Run<'_>) -> Result<Vec<(Shape, DType)>> {
    let (_quiet, _mixes) = (NoGrad::new(), WithoutValues::new());
    let metas: SmallVec<[Option<Tensor>; 4]> =
        call.inputs.iter().map(|t| t.map(Tensor::meta).transpose()).collect::<Result<_>>()?;
    let inputs: SmallVec<[Option<&Tensor>; 4]> = metas.iter().map(Option::as_ref).collect();
    let outputs = run(&Call { inputs: &inputs, ..*call })?;
    Ok(outputs.iter().map(|t| (t.shape().clone(), t.dtype())).collect())
}
