//! Shape changes of tensors.

use super::call::OpName;
use crate::error::Result;
use crate::tensor::Tensor;

static PERMUTE: OpName = OpName::new("permute_dims");
static RESHAPE: OpName = OpName::new("reshape");

/// The same elements in another shape.
pub fn reshape(t: &Tensor, sizes: Vec<i64>) -> Result<Tensor> {
    RESHAPE.call(&[t.into(), sizes.into()], &[])
}

/// The axes in another order.
pub fn permute(t: &Tensor, axes: Vec<i64>) -> Result<Tensor> {
    PERMUTE.call(&[t.into(), axes.into()], &[])
}
