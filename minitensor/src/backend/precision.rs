//! The precision of half floats inside of a composite op and of a gradient: `float32` from start to end.
//!
//! There, a loop stores a `float16` or `bfloat16` result as `float32`. The results of the whole op are rounded once, so they
//! are as exact as those of a single loop.

use std::cell::Cell;
use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::attr::Attr;
use crate::autograd::{NoGrad, is_grad_enabled};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::by_name::names;
use crate::op::call::dtype_rule::DTypes;
use crate::op::{Call, DTypeRule, OpDef, Output, Role};
use crate::tensor::{Device, Shape, Tensor};

thread_local! {
    static WIDE: Cell<bool> = const { Cell::new(false) };
}

/// While this guard lives, loops on this thread store half results as `float32`.
#[must_use = "dropping the guard restores the previous precision"]
pub struct Wide {
    before: bool,
    _not_send: PhantomData<*const ()>,
}

impl Wide {
    /// Starts; dropping the guard ends it.
    pub fn new() -> Wide {
        Wide { before: WIDE.with(|cell| cell.replace(true)), _not_send: PhantomData }
    }
}

impl Drop for Wide {
    fn drop(&mut self) {
        WIDE.with(|cell| cell.set(self.before));
    }
}

/// Whether loops on this thread store half results as `float32`.
pub fn is_wide() -> bool {
    WIDE.with(Cell::get)
}

/// The dtype in which a loop stores a result of this dtype.
#[inline]
pub fn stored_dtype(dtype: DType) -> DType {
    if dtype.compute() != dtype && is_wide() { dtype.compute() } else { dtype }
}

/// The dtype in which a loop stores an output.
#[inline]
pub fn output_dtype(op: &OpDef, output: &Output, dtypes: &DTypes, attrs: &[Attr]) -> Result<DType> {
    let dtype = op.output_dtype_of(output.dtype, dtypes, attrs)?;
    let is_new = matches!(output.dtype, DTypeRule::Generic(_)) && !matches!(output.role, Role::Mutates(_));
    Ok(if is_new { stored_dtype(dtype) } else { dtype })
}

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
    let _quiet = NoGrad::new();
    let metas: SmallVec<[Option<Tensor>; 4]> =
        call.inputs.iter().map(|t| t.map(Tensor::meta).transpose()).collect::<Result<_>>()?;
    let inputs: SmallVec<[Option<&Tensor>; 4]> = metas.iter().map(Option::as_ref).collect();
    let outputs = run(&Call { inputs: &inputs, ..*call })?;
    Ok(outputs.iter().map(|t| (t.shape().clone(), t.dtype())).collect())
}
