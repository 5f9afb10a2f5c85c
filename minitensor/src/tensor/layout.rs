//! [`Layout`]: the positions of a tensor's elements in its storage.

use super::{Shape, Strides, normalize_axis};
use crate::error::{Error, Result, counted};

/// The positions of a tensor's elements in its storage. The methods give the layouts of views.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    /// The sizes of the dimensions.
    pub shape: Shape,
    /// The distance between neighbours along each dimension, in elements.
    pub strides: Strides,
    /// The position of the first element, in elements from the start of the storage.
    pub offset: usize,
}

impl Layout {
    /// Whether the elements are adjacent, in row-major order.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.shape.is_contiguous(&self.strides)
    }

    /// Whether two elements may share memory, as after expanding.
    pub fn overlaps_itself(&self) -> bool {
        let mut axes: Vec<_> = self.shape.iter().zip(&self.strides).filter(|(n, _)| **n > 1).collect();
        axes.sort_by_key(|(_, s)| s.unsigned_abs());
        let mut reach = 0;
        axes.iter().any(|(n, s)| {
            let overlaps = s.unsigned_abs() <= reach;
            reach += s.unsigned_abs() * (**n - 1);
            overlaps
        })
    }

    /// The same elements in another shape of as many elements. `None` if that requires a copy.
    pub fn reshape(&self, shape: Shape) -> Option<Layout> {
        let strides = reshaped_strides(&self.shape, &self.strides, &shape)?;
        Some(Layout { shape, strides, offset: self.offset })
    }

    /// The shape with these sizes, one of which may be `-1`.
    pub fn infer_shape(&self, sizes: &[i64]) -> Result<Shape> {
        Shape::check_rank(sizes.len())?;
        let fail = |why: &str| {
            Error::value(format!(
                "cannot reshape {} of shape {} to {sizes:?}: {why}",
                counted(self.shape.numel(), "element"),
                self.shape
            ))
        };
        let mut known: i64 = 1;
        for size in sizes.iter().filter(|s| **s != -1) {
            if *size < 0 {
                return Err(fail("sizes must not be negative, except for one -1"));
            }
            known = known.checked_mul(*size).ok_or_else(|| fail("too many elements"))?;
        }
        let numel = self.shape.numel() as i64;
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
    pub fn permute(&self, axes: &[i64]) -> Result<Layout> {
        let rank = self.shape.len();
        let mut seen = vec![false; rank];
        let fail = || Error::value(format!("axes {axes:?} are not a permutation of the axes of shape {}", self.shape));
        if axes.len() != rank {
            return Err(fail());
        }
        let mut shape = self.shape.clone();
        let mut strides = self.strides.clone();
        for (to, axis) in axes.iter().enumerate() {
            let from = normalize_axis(*axis, rank)?;
            if std::mem::replace(&mut seen[from], true) {
                return Err(fail());
            }
            shape.dims_mut()[to] = self.shape[from];
            strides[to] = self.strides[from];
        }
        Ok(Layout { shape, strides, offset: self.offset })
    }

    /// The tensor expanded to a larger shape, without a copy; `-1` keeps a size.
    pub fn expand(&self, sizes: &[i64]) -> Result<Layout> {
        let fail = || {
            Error::value(format!(
                "cannot expand shape {} to {sizes:?}: sizes are aligned at the last axis and must be equal, or 1 in \
                 the old shape",
                self.shape
            ))
        };
        Shape::check_rank(sizes.len())?;
        let new = sizes.len().checked_sub(self.shape.len()).ok_or_else(fail)?;
        let mut shape = Shape::default();
        let mut strides = Strides::new();
        for (d, size) in sizes.iter().enumerate() {
            let old = d.checked_sub(new).map(|o| (self.shape[o], self.strides[o]));
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
        Ok(Layout { shape, strides, offset: self.offset })
    }

    /// The tensor broadcast to a shape. The caller has checked that it broadcasts.
    pub fn broadcast(&self, shape: &Shape) -> Layout {
        let new = shape.len() - self.shape.len();
        let strides = (0..shape.len())
            .map(|d| if d < new || (self.shape[d - new] == 1 && shape[d] != 1) { 0 } else { self.strides[d - new] })
            .collect();
        Layout { shape: shape.clone(), strides, offset: self.offset }
    }

    /// The `length` elements of an axis at `start`, `start + step`, and so on; the step may be negative.
    pub fn slice(&self, axis: i64, start: usize, length: usize, step: i64) -> Result<Layout> {
        let axis = normalize_axis(axis, self.shape.len())?;
        let size = self.shape[axis];
        let last = start as i128 + step as i128 * (length as i128 - 1);
        if length > 0 && (start >= size || last < 0 || last >= size as i128) {
            return Err(Error::index(format!(
                "a slice of {} from {start} with step {step} exceeds axis {axis} of size {size}",
                counted(length, "element")
            )));
        }
        let mut shape = self.shape.clone();
        let mut strides = self.strides.clone();
        let moved = if length > 0 { start as isize * strides[axis] } else { 0 };
        shape.dims_mut()[axis] = length;
        strides[axis] = if length > 1 { strides[axis] * step as isize } else { strides[axis] };
        Ok(Layout { shape, strides, offset: (self.offset as isize + moved) as usize })
    }

    /// The tensor without an axis of size 1.
    pub fn squeeze(&self, axis: i64) -> Result<Layout> {
        let axis = normalize_axis(axis, self.shape.len())?;
        if self.shape[axis] != 1 {
            return Err(Error::value(format!(
                "cannot squeeze axis {axis} of shape {}: expected size 1, got {}",
                self.shape, self.shape[axis]
            )));
        }
        let keep = |d: &usize| *d != axis;
        let shape = (0..self.shape.len()).filter(keep).map(|d| self.shape[d]).collect();
        let strides = (0..self.shape.len()).filter(keep).map(|d| self.strides[d]).collect();
        Ok(Layout { shape, strides, offset: self.offset })
    }

    /// The tensor with a new axis of size 1 before `axis`.
    pub fn unsqueeze(&self, axis: i64) -> Result<Layout> {
        Shape::check_rank(self.shape.len() + 1)?;
        let axis = normalize_axis(axis, self.shape.len() + 1)?;
        let mut sizes = self.shape.to_vec();
        let mut strides = self.strides.clone();
        strides.insert(axis, sizes.get(axis).map_or(1, |s| strides[axis] * *s as isize));
        sizes.insert(axis, 1);
        Ok(Layout { shape: sizes.into(), strides, offset: self.offset })
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
