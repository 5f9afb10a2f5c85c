//! Shape changes of tensors in gradients: ops if the pass is recorded, else plain views. The views save two of the three
//! calls in the gradient of a small reduction.

use crate::autograd::is_grad_enabled;
use crate::error::Result;
use crate::op::by_name::names::{EXPAND, PERMUTE, RESHAPE};
use crate::tensor::{Shape, Tensor};

/// Expanded tensors of at most this many elements are copied to be contiguous: later calls then take the short path.
const FEW: usize = 1024;

/// The same elements in another shape.
pub fn reshape(t: &Tensor, sizes: Vec<i64>) -> Result<Tensor> {
    match is_grad_enabled() {
        true => RESHAPE.call(&[t.into(), sizes.into()], &[]),
        false => t.reshape_view(&sizes),
    }
}

/// The axes in another order.
pub fn permute(t: &Tensor, axes: Vec<i64>) -> Result<Tensor> {
    match is_grad_enabled() {
        true => PERMUTE.call(&[t.into(), axes.into()], &[]),
        false => t.permute_view(&axes),
    }
}

/// The tensor expanded to a shape to which it broadcasts.
pub fn expand(t: &Tensor, shape: &Shape) -> Result<Tensor> {
    if is_grad_enabled() {
        let sizes: Vec<i64> = shape.iter().map(|s| *s as i64).collect();
        return EXPAND.call(&[t.into(), sizes.into()], &[]);
    }
    let wide = t.broadcast_view(shape);
    if shape.numel() <= FEW { wide.copied() } else { Ok(wide) }
}
