//! Views: other layouts over the same memory, without history. The ops of the same names add the history.

use super::{Layout, Shape, Tensor};
use crate::dtype::Kind;
use crate::error::{Error, Result};

impl Tensor {
    /// The same elements in another shape. They share memory if the layout allows it. One size may be `-1`, and is inferred.
    pub fn reshape_view(&self, sizes: &[i64]) -> Result<Tensor> {
        let shape = self.layout().infer_shape(sizes)?;
        if let Some(layout) = self.layout().reshape(shape.clone()) {
            return Ok(self.with_layout(layout));
        }
        let copy = self.contiguous()?;
        let (strides, offset) = (shape.contiguous_strides(), copy.offset());
        Ok(copy.with_layout(Layout { shape, strides, offset }))
    }

    /// The tensor with its axes in another order.
    pub fn permute_view(&self, axes: &[i64]) -> Result<Tensor> {
        Ok(self.with_layout(self.layout().permute(axes)?))
    }

    /// The tensor expanded to a larger shape, without a copy; `-1` keeps a size.
    pub fn expand_view(&self, sizes: &[i64]) -> Result<Tensor> {
        Ok(self.with_layout(self.layout().expand(sizes)?))
    }

    /// The tensor broadcast to a shape. The caller has checked that it broadcasts.
    pub fn broadcast_view(&self, shape: &Shape) -> Tensor {
        self.with_layout(self.layout().broadcast(shape))
    }

    /// The `length` elements of an axis at `start`, `start + step`, and so on; the step may be negative.
    pub fn slice_view(&self, axis: i64, start: usize, length: usize, step: i64) -> Result<Tensor> {
        Ok(self.with_layout(self.layout().slice(axis, start, length, step)?))
    }

    /// The tensor without an axis of size 1.
    pub fn squeeze_view(&self, axis: i64) -> Result<Tensor> {
        Ok(self.with_layout(self.layout().squeeze(axis)?))
    }

    /// The tensor with a new axis of size 1 before `axis`.
    pub fn unsqueeze_view(&self, axis: i64) -> Result<Tensor> {
        Ok(self.with_layout(self.layout().unsqueeze(axis)?))
    }

    /// The real parts (0) or the imaginary parts (1) of a complex tensor.
    pub fn part_view(&self, part: usize) -> Result<Tensor> {
        if self.dtype().kind() != Kind::Complex {
            return Err(Error::type_(format!(
                "only complex tensors have a real and an imaginary part, got {}",
                self.dtype()
            )));
        }
        let strides = self.strides().iter().map(|s| s * 2).collect();
        let (shape, offset) = (self.shape().clone(), self.offset() * 2 + part);
        // SAFETY: in memory, a complex number is its real part followed by its imaginary part, so the view is in the storage.
        Ok(unsafe { Tensor::from_parts(self.storage().clone(), shape, strides, offset, self.dtype().real()) })
    }

    /// The tensor in row-major order: a copy, or the same memory if it is contiguous.
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.detach()) } else { self.copied() }
    }
}
