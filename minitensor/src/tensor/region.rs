//! [`Region`]: the part of a tensor's memory that a view covers.

use super::{Layout, Shape, Strides, Tensor};
use crate::dtype::DType;
use crate::error::{Error, Result};
use minitensor_kernels::Const;

/// The position of a view in the memory of its base tensor, the whole. The gradient of the view is read from, and written
/// to, the gradient of the whole through the same window.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    whole: (Shape, Strides),
    part: (Shape, Strides),
    /// The distance from the first element of the whole to the first element of the part, in elements of the part.
    offset: i64,
    /// Whether the part consists of the real or the imaginary parts of the whole's complex numbers.
    is_component: bool,
}

/// The offsets of the lowest and the highest element from the first one.
fn extent((shape, strides): &(Shape, Strides)) -> (i128, i128) {
    shape.iter().zip(strides).fold((0, 0), |(low, high), (size, stride)| {
        let reach = *stride as i128 * (*size as i128 - 1).max(0);
        if reach < 0 { (low + reach, high) } else { (low, high + reach) }
    })
}

impl Region {
    /// The region of a view.
    pub(crate) fn of(whole: &Tensor, part: &Tensor) -> Region {
        let is_component = whole.dtype() != part.dtype();
        let unit = if is_component { 2 } else { 1 };
        Region {
            whole: (whole.shape().clone(), whole.strides().into()),
            part: (part.shape().clone(), part.strides().into()),
            offset: part.offset() as i64 - (whole.offset() * unit) as i64,
            is_component,
        }
    }

    /// Encodes the region as an attribute: whether it is a component, the offset, the rank of the whole, the shape and strides
    /// of the whole, and the shape and strides of the part.
    pub fn to_ints(&self) -> Vec<i64> {
        let mut ints = vec![i64::from(self.is_component), self.offset, self.whole.0.len() as i64];
        for (shape, strides) in [&self.whole, &self.part] {
            ints.extend(shape.iter().map(|n| *n as i64));
            ints.extend(strides.iter().map(|s| *s as i64));
        }
        ints
    }

    /// Decodes the attribute of [`Region::to_ints`].
    ///
    /// # Errors
    /// If the numbers are not such an encoding, or if the part is not within the whole.
    pub fn read(ints: &[i64]) -> Result<Region> {
        let malformed = || Error::value(format!("{ints:?} does not describe a region of a tensor"));
        let (is_component, offset, rank, layouts) = match ints {
            [is_component @ 0..=1, offset, rank, layouts @ ..] => (*is_component == 1, *offset, *rank, layouts),
            _ => return Err(malformed()),
        };
        let (whole, part) = usize::try_from(rank)
            .ok()
            .and_then(|rank| layouts.split_at_checked(rank.checked_mul(2)?))
            .filter(|(_, part)| part.len() % 2 == 0)
            .ok_or_else(malformed)?;
        let layout = |ints: &[i64]| -> Result<(Shape, Strides)> {
            let (shape, strides) = ints.split_at(ints.len() / 2);
            let shape: Shape =
                shape.iter().map(|n| usize::try_from(*n).map_err(|_| malformed())).collect::<Result<_>>()?;
            shape.checked_numel()?;
            Ok((shape, strides.iter().map(|s| *s as isize).collect()))
        };
        let region = Region { whole: layout(whole)?, part: layout(part)?, offset, is_component };
        let ((low, high), (first, last)) = (extent(&region.whole), extent(&region.part));
        let (unit, offset) = (if is_component { 2 } else { 1 }, i128::from(offset));
        let is_within = first + offset >= low * unit && last + offset < (high + 1) * unit;
        if region.part.0.numel() > 0 && !is_within {
            return Err(malformed());
        }
        Ok(region)
    }

    /// Whether the part is the whole, with a last axis of size 1 removed or added, or with each element repeated along a last
    /// axis.
    pub(crate) fn differs_in_last_axis(&self) -> bool {
        let ((whole, from), (part, to)) = (&self.whole, &self.part);
        let without_last = |shape: &Shape, is_one: bool| if is_one { shape.len().checked_sub(1) } else { None };
        let of_whole = without_last(whole, whole.last() == Some(&1));
        let of_part = without_last(part, part.last() == Some(&1) || to.last() == Some(&0));
        let is_kept = |(a, b): (usize, usize)| {
            a == b && (0..a).all(|axis| whole[axis] == part[axis] && (part[axis] == 1 || from[axis] == to[axis]))
        };
        let kept = [(of_whole, Some(part.len())), (Some(whole.len()), of_part), (of_whole, of_part)];
        let is_whole = self.offset == 0 && !self.is_component;
        is_whole && kept.into_iter().filter_map(|(a, b)| a.zip(b)).any(is_kept)
    }

    /// The same region of each tensor in a batch, whose first axis is that of the tensors. If `whole` is such a batch, the
    /// region is a view of it.
    pub(crate) fn batched(&self, size: usize, whole: Option<&Tensor>) -> Region {
        let (low, high) = extent(&self.whole);
        let fits = |t: &&Tensor| t.ndim() > 0 && t.shape()[1..] == *self.whole.0 && t.strides()[1..] == *self.whole.1;
        let step = whole.filter(fits).map_or((high - low + 1) as isize, |t| t.strides()[0]);
        let unit = if self.is_component { 2 } else { 1 };
        let with = |(shape, strides): &(Shape, Strides), step: isize| {
            let shape = std::iter::once(size).chain(shape.iter().copied()).collect();
            (shape, std::iter::once(step).chain(strides.iter().copied()).collect())
        };
        let (whole, part) = (with(&self.whole, step), with(&self.part, step * unit));
        Region { whole, part, ..self.clone() }
    }

    /// Zeros with the shape and strides of the whole. An error if elements of the whole overlap.
    fn blank(&self, dtype: DType, like: &Tensor) -> Result<Tensor> {
        let (low, high) = extent(&self.whole);
        let size = usize::try_from(high - low + 1).map_err(|_| Error::memory("a region is too large"))?;
        let memory = Tensor::zeros([size], dtype, like.device())?;
        let blank = memory.with_layout(Layout {
            shape: self.whole.0.clone(),
            strides: self.whole.1.clone(),
            offset: -low as usize,
        });
        match blank.overlaps_itself() {
            true => Err(Error::runtime(
                "the gradient of a view of a tensor whose elements overlap in memory is not available; clone() the tensor first",
            )),
            false => Ok(blank),
        }
    }

    fn copy(&self, whole: &Tensor) -> Result<Tensor> {
        if whole.shape() != &self.whole.0 {
            return Err(Error::value(format!(
                "a region of a tensor of shape {} does not apply to a tensor of shape {}",
                self.whole.0,
                whole.shape()
            )));
        }
        let copy = self.blank(whole.dtype(), whole)?;
        copy.copy_from(whole)?;
        Ok(copy)
    }

    /// The part of a tensor that has the strides of the whole.
    fn window(&self, whole: &Tensor, part: &Shape) -> Tensor {
        let (unit, dtype) = if self.is_component { (2, whole.dtype().real()) } else { (1, whole.dtype()) };
        let offset = (whole.offset() * unit) as i64 + self.offset;
        // SAFETY: the part is within the whole: the region comes from a view, or `read` checked it. The tensor has the layout
        // of the whole.
        unsafe {
            Tensor::from_parts(whole.storage().clone(), part.clone(), self.part.1.clone(), offset as usize, dtype)
        }
    }

    /// The part of a tensor that has the shape of the whole.
    pub fn part_of(&self, whole: &Tensor) -> Result<Tensor> {
        let has_layout = whole.shape() == &self.whole.0
            && self.whole.0.iter().zip(whole.strides().iter().zip(&self.whole.1)).all(|(n, (a, b))| *n == 1 || a == b);
        if has_layout && whole.numel() > 0 && (!self.is_component || whole.dtype().is_complex()) {
            return Ok(self.window(whole, &self.part.0));
        }
        let whole = self.copy(whole)?;
        Ok(self.window(&whole, &self.part.0))
    }

    /// The axes along which elements of the part share memory, as after expanding.
    pub fn repeated_axes(&self) -> Vec<i64> {
        let is_repeated = |d: &usize| self.part.0[*d] > 1 && self.part.1[*d] == 0;
        (0..self.part.0.len()).filter(is_repeated).map(|d| d as i64).collect()
    }

    /// A tensor of the whole's shape with these elements in the part, and 0 elsewhere. The part has one element along its
    /// [repeated axes](Region::repeated_axes). The result has this dtype, or the complex dtype whose components have it.
    pub fn spread(&self, part: &Tensor, dtype: DType) -> Result<Tensor> {
        let dtype = match (self.is_component, dtype) {
            (true, DType::F32) => DType::C64,
            (true, DType::F64) => DType::C128,
            (_, dtype) => dtype,
        };
        let whole = self.blank(dtype, part)?;
        self.write(&whole, part)?;
        Ok(whole)
    }

    /// A copy with 0 in the part.
    pub fn cleared(&self, whole: &Tensor) -> Result<Tensor> {
        let copy = self.copy(whole)?;
        self.window(&copy, &self.part.0).fill(Const::Int(0))?;
        Ok(copy)
    }

    /// A copy with these elements in the part.
    pub fn replaced(&self, whole: &Tensor, part: &Tensor) -> Result<Tensor> {
        let copy = self.copy(whole)?;
        self.write(&copy, part)?;
        Ok(copy)
    }

    fn write(&self, whole: &Tensor, part: &Tensor) -> Result<()> {
        let window = self.window(whole, part.shape());
        let fits = part.ndim() == self.part.0.len()
            && part
                .shape()
                .iter()
                .zip(self.part.0.iter().zip(&self.part.1))
                .all(|(n, (m, s))| n == m || *n == 1 && *s == 0)
            && part.dtype() == window.dtype();
        if !fits || window.overlaps_itself() {
            return Err(Error::value(format!(
                "a tensor of dtype {} and shape {} cannot be written to the region",
                part.dtype(),
                part.shape()
            )));
        }
        window.copy_from(part)
    }
}
