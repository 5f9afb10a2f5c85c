//! Other shapes of the tensors of a gradient: by ops where the pass is recorded, else by bare views, which spares two calls
//! out of three of a small reduction's gradient.

use super::names::{EXPAND, PERMUTE, RESHAPE};
use crate::autograd::is_grad_enabled;
use crate::error::Result;
use crate::tensor::{Shape, Tensor};

/// Expanded tensors of at most so many elements are written out: what computes with them takes the short way.
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

/// Stretched to a shape that it broadcasts to.
pub fn expand(t: &Tensor, shape: &Shape) -> Result<Tensor> {
    if is_grad_enabled() {
        let sizes: Vec<i64> = shape.iter().map(|s| *s as i64).collect();
        return EXPAND.call(&[t.into(), sizes.into()], &[]);
    }
    let wide = t.broadcast_view(shape);
    if shape.numel() <= FEW { wide.copied() } else { Ok(wide) }
}
