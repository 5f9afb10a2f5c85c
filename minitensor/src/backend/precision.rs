//! The precision of half floats inside a body that is made of ops, and inside a gradient: float32 from start to end.
//!
//! There, a loop whose result would be `float16` or `bfloat16` keeps it in `float32`. The results of the whole body are
//! rounded once, so they are as exact as those of a body that is one loop.

use std::cell::Cell;
use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::autograd::{NoGrad, is_grad_enabled};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Call, names};
use crate::tensor::{Device, Tensor};

thread_local! {
    static WIDE: Cell<bool> = const { Cell::new(false) };
}

/// Loops on this thread keep half results in `float32` while it lives.
#[must_use = "the precision is as before when the guard is dropped"]
pub struct Wide {
    before: bool,
    _not_send: PhantomData<*const ()>,
}

impl Wide {
    /// Until the guard is dropped.
    pub fn new() -> Wide {
        Wide { before: WIDE.with(|cell| cell.replace(true)), _not_send: PhantomData }
    }
}

impl Drop for Wide {
    fn drop(&mut self) {
        WIDE.with(|cell| cell.set(self.before));
    }
}

/// Whether half results are kept in `float32` here.
pub fn is_wide() -> bool {
    WIDE.with(Cell::get)
}

/// The dtype that a loop keeps a result of that dtype in.
#[inline]
pub fn kept(dtype: DType) -> DType {
    if dtype.compute() != dtype && is_wide() { dtype.compute() } else { dtype }
}

/// What runs the body of a call.
type Run<'a> = dyn Fn(&Call<'_>) -> Result<Vec<Tensor>> + 'a;

/// Runs a body that is made of ops. Where it takes half floats, its parts compute in `float32`, and the results are
/// rounded to the dtypes that the body has by itself.
pub fn rounded_once(call: &Call<'_>, run: &Run<'_>) -> Result<Vec<Tensor>> {
    let is_half = |t: &&Tensor| t.dtype().compute() != t.dtype() && t.device() == Device::Cpu;
    if is_wide() || !call.inputs.iter().flatten().any(is_half) {
        return run(call);
    }
    // A body that looks at values has no dtypes without them; it also reports its own errors best.
    let Ok(promised) = dtypes_of(call, run) else { return run(call) };
    let outputs = {
        let _wide = Wide::new();
        run(call)?
    };
    let rounded = |(t, dtype): (Tensor, DType)| match t.dtype() == dtype || t.dtype() != dtype.compute() {
        true => Ok(t),
        false if t.requires_grad() && is_grad_enabled() => names::ASTYPE.call(&[(&t).into(), dtype.into()], &[]),
        false => t.cast(dtype),
    };
    outputs.into_iter().zip(promised).map(rounded).collect()
}

/// The dtypes of the results, by a run over tensors without values.
fn dtypes_of(call: &Call<'_>, run: &Run<'_>) -> Result<Vec<DType>> {
    let _quiet = NoGrad::new();
    let meta = |t: &&Tensor| Tensor::empty(t.shape().clone(), t.dtype(), Device::Meta);
    let metas: SmallVec<[Option<Tensor>; 4]> =
        call.inputs.iter().map(|t| t.as_ref().map(meta).transpose()).collect::<Result<_>>()?;
    let inputs: SmallVec<[Option<&Tensor>; 4]> = metas.iter().map(Option::as_ref).collect();
    Ok(run(&Call { inputs: &inputs, ..*call })?.iter().map(Tensor::dtype).collect())
}
