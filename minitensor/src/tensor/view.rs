//! Views: other shapes and strides over the same memory, without history. The ops of the same names add the history.

use super::{Shape, Strides, Tensor, normalize_axis};
use crate::dtype::Kind;
use crate::error::{Error, Result, counted};

impl Tensor {
    /// The same elements in another shape. They share memory if the layout allows it. One size may be `-1`, and is inferred.
    pub fn reshape_view(&self, sizes: &[i64]) -> Result<Tensor> {
        let shape = self.infer_shape(sizes)?;
        match reshaped_strides(self.shape(), self.strides(), &shape) {
            Some(strides) => Ok(self.window(shape, strides, self.0.offset)),
            None => {
                let copy = self.contiguous()?;
                let strides = shape.contiguous_strides();
                Ok(copy.window(shape, strides, copy.0.offset))
            }
        }
    }

    fn infer_shape(&self, sizes: &[i64]) -> Result<Shape> {
        Shape::check_rank(sizes.len())?;
        let fail = |why: &str| {
            Error::value(format!(
                "cannot reshape {} of shape {} to {sizes:?}: {why}",
                counted(self.numel(), "element"),
                self.shape()
            ))
        };
        let mut known: i64 = 1;
        for size in sizes.iter().filter(|s| **s != -1) {
            if *size < 0 {
                return Err(fail("sizes must not be negative, except for one -1"));
            }
            known = known.checked_mul(*size).ok_or_else(|| fail("too many elements"))?;
        }
        let numel = self.numel() as i64;
        let rest = match sizes.iter().filter(|s| **s == -1).count() {
            0 if known != numel => {
                return Err(fail(&format!("the new shape has {}", counted(known as usize, "element"))));
            }
            0 => 0,
            1 if known == 0 => return Err(fail("the size for -1 is ambiguous, because another size is 0")),
            1 if numel % known != 0 => return Err(fail(&format!("{numel} is not a multiple of {known}"))),
            1 => numel / known,
            _ => return Err(fail("only one size can be -1")),
        };
        Ok(sizes.iter().map(|s| if *s == -1 { rest as usize } else { *s as usize }).collect())
    }

    /// The tensor with its axes in another order.
    pub fn permute_view(&self, axes: &[i64]) -> Result<Tensor> {
        let rank = self.ndim();
        let mut seen = vec![false; rank];
        let fail = || {
            Error::value(format!("axes {axes:?} are not a permutation of the {rank} axes of shape {}", self.shape()))
        };
        if axes.len() != rank {
            return Err(fail());
        }
        let mut shape = self.shape().clone();
        let mut strides = self.0.strides.clone();
        for (to, axis) in axes.iter().enumerate() {
            let from = normalize_axis(*axis, rank)?;
            if std::mem::replace(&mut seen[from], true) {
                return Err(fail());
            }
            shape.dims_mut()[to] = self.shape()[from];
            strides[to] = self.strides()[from];
        }
        Ok(self.window(shape, strides, self.0.offset))
    }

    /// The tensor expanded to a larger shape, without a copy; `-1` keeps a size.
    pub fn expand_view(&self, sizes: &[i64]) -> Result<Tensor> {
        let fail = || {
            Error::value(format!(
                "cannot expand shape {} to {sizes:?}: sizes are aligned at the last axis and must be equal, or 1 in \
                 the old shape",
                self.shape()
            ))
        };
        Shape::check_rank(sizes.len())?;
        let new = sizes.len().checked_sub(self.ndim()).ok_or_else(fail)?;
        let mut shape = Shape::default();
        let mut strides = Strides::new();
        for (d, size) in sizes.iter().enumerate() {
            let old = d.checked_sub(new).map(|o| (self.shape()[o], self.strides()[o]));
            let (size, stride) = match (old, *size) {
                (Some((old, stride)), -1) => (old, stride),
                (_, s) if s < 0 => return Err(fail()),
                (Some((old, stride)), s) if old == s as usize => (old, stride),
                (Some((1, _)) | None, s) => (s as usize, 0),
                _ => return Err(fail()),
            };
            shape.push(size);
            strides.push(stride);
        }
        shape.checked_numel()?;
        Ok(self.window(shape, strides, self.0.offset))
    }

    /// The tensor broadcast to a shape. The caller has checked that it broadcasts.
    pub fn broadcast_view(&self, shape: &Shape) -> Tensor {
        let new = shape.len() - self.ndim();
        let strides = (0..shape.len())
            .map(|d| if d < new || (self.shape()[d - new] == 1 && shape[d] != 1) { 0 } else { self.strides()[d - new] })
            .collect();
        self.window(shape.clone(), strides, self.0.offset)
    }

    /// The `length` elements of an axis at `start`, `start + step`, and so on; the step may be negative.
    pub fn slice_view(&self, axis: i64, start: usize, length: usize, step: i64) -> Result<Tensor> {
        let axis = normalize_axis(axis, self.ndim())?;
        let size = self.shape()[axis];
        let last = start as i128 + step as i128 * (length as i128 - 1);
        if length > 0 && (start >= size || last < 0 || last >= size as i128) {
            return Err(Error::index(format!(
                "a slice of {length} elements from {start} with step {step} exceeds axis {axis} of size {size}"
            )));
        }
        let mut shape = self.shape().clone();
        let mut strides = self.0.strides.clone();
        let moved = if length > 0 { start as isize * strides[axis] } else { 0 };
        shape.dims_mut()[axis] = length;
        strides[axis] = if length > 1 { strides[axis] * step as isize } else { strides[axis] };
        Ok(self.window(shape, strides, (self.0.offset as isize + moved) as usize))
    }

    /// The tensor without an axis of size 1.
    pub fn squeeze_view(&self, axis: i64) -> Result<Tensor> {
        let axis = normalize_axis(axis, self.ndim())?;
        if self.shape()[axis] != 1 {
            return Err(Error::value(format!(
                "cannot squeeze axis {axis} of shape {}: expected size 1, got {}",
                self.shape(),
                self.shape()[axis]
            )));
        }
        let keep = |d: &usize| *d != axis;
        let shape = (0..self.ndim()).filter(keep).map(|d| self.shape()[d]).collect();
        let strides = (0..self.ndim()).filter(keep).map(|d| self.strides()[d]).collect();
        Ok(self.window(shape, strides, self.0.offset))
    }

    /// The tensor with a new axis of size 1 before `axis`.
    pub fn unsqueeze_view(&self, axis: i64) -> Result<Tensor> {
        Shape::check_rank(self.ndim() + 1)?;
        let axis = normalize_axis(axis, self.ndim() + 1)?;
        let mut sizes = self.shape().to_vec();
        let mut strides = self.0.strides.clone();
        strides.insert(axis, sizes.get(axis).map_or(1, |s| strides[axis] * *s as isize));
        sizes.insert(axis, 1);
        Ok(self.window(sizes.into(), strides, self.0.offset))
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
        let (shape, offset) = (self.shape().clone(), self.0.offset * 2 + part);
        // SAFETY: in memory, a complex number is its real part followed by its imaginary part, so the view is in the storage.
        Ok(unsafe { Tensor::from_parts(self.storage().clone(), shape, strides, offset, self.dtype().real()) })
    }

    /// The tensor in row-major order: a copy, or the same memory if it is contiguous.
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.detach()) } else { self.copied() }
    }
}

/// The strides of a window in another shape, if such strides exist.
fn reshaped_strides(shape: &[usize], strides: &[isize], new: &Shape) -> Option<Strides> {
    if new.numel() == 0 {
        return Some(new.contiguous_strides());
    }
    let mut out = Strides::from_elem(0, new.len());
    // Both shapes are traversed from the end. Old axes that form one evenly strided block can be split differently.
    let mut old: Vec<(usize, isize)> =
        shape.iter().copied().zip(strides.iter().copied()).filter(|(s, _)| *s != 1).collect();
    let mut block = 1;
    let mut step = 1;
    for d in (0..new.len()).rev() {
        if new[d] == 1 {
            out[d] = step;
            continue;
        }
        if block == 1 {
            let (size, stride) = old.pop()?;
            (block, step) = (size, stride);
        }
        while block % new[d] != 0 || block < new[d] {
            let (size, stride) = old.pop()?;
            if stride != step * block as isize {
                return None;
            }
            block *= size;
        }
        out[d] = step;
        step *= new[d] as isize;
        block /= new[d];
    }
    Some(out)
}
