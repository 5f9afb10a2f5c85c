//! [`Shape`]: the sizes of a tensor's dimensions, and broadcasting.

use std::fmt;
use std::ops::Deref;

use smallvec::SmallVec;

use crate::error::{Error, Result, counted};

/// The sizes of the dimensions, outermost first. The empty shape is that of a single number.
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; INLINE]>);

/// The distance between neighbours along each dimension, in elements.
pub type Strides = SmallVec<[isize; INLINE]>;

/// The maximum number of dimensions. It limits the recursion of code that handles one dimension at a time.
pub const MAX_NDIM: usize = 64;

/// Up to this many dimensions are stored inline.
const INLINE: usize = 4;

impl Shape {
    /// The sizes.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// The shape with these sizes. An error if one is negative.
    pub fn from_sizes(sizes: &[i64]) -> Result<Shape> {
        let size = |n: &i64| {
            usize::try_from(*n)
                .map_err(|_| Error::value(format!("the sizes of a shape must not be negative, got {sizes:?}")))
        };
        sizes.iter().map(size).collect()
    }

    /// An error if the rank exceeds the maximum.
    pub fn check_rank(rank: usize) -> Result<()> {
        if rank <= MAX_NDIM {
            return Ok(());
        }
        Err(Error::value(format!("a tensor has at most {MAX_NDIM} dimensions, got {rank}")))
    }

    /// The number of elements. An error if that number, or their size in bytes, exceeds the address space.
    pub fn checked_numel(&self) -> Result<usize> {
        Shape::check_rank(self.0.len())?;
        let limit = isize::MAX as usize / 16;
        // If one size is 0, the others need only fit into `i64`, the type of attributes and strides.
        if self.0.contains(&0) && self.0.iter().all(|d| *d <= isize::MAX as usize) {
            return Ok(0);
        }
        let numel = self.0.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        numel.filter(|n| (1..=limit).contains(n)).ok_or_else(|| {
            Error::memory(format!("a tensor of shape {self} would have more elements than memory can address"))
        })
    }

    /// The number of elements, for a shape that passed [`Shape::checked_numel`].
    #[inline]
    pub fn numel(&self) -> usize {
        self.0.iter().product()
    }

    /// Row-major strides.
    pub fn contiguous_strides(&self) -> Strides {
        let mut strides: Strides = SmallVec::from_elem(1, self.0.len());
        for d in (1..self.0.len()).rev() {
            strides[d - 1] = strides[d] * self.0[d].max(1) as isize;
        }
        strides
    }

    /// Whether elements with these strides are adjacent in memory, in row-major order.
    #[inline]
    pub fn is_contiguous(&self, strides: &[isize]) -> bool {
        let mut expected = 1;
        for (size, stride) in self.0.iter().zip(strides).rev() {
            if *size != 1 {
                if *stride != expected {
                    return self.0.contains(&0);
                }
                expected *= *size as isize;
            }
        }
        true
    }

    /// The shape that both broadcast to, if there is one. Sizes are aligned at the end, and a size of 1 expands.
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        let (long, short) = if self.len() >= other.len() { (self, other) } else { (other, self) };
        let mut out = long.clone();
        let offset = long.len() - short.len();
        for (d, size) in short.iter().enumerate() {
            let o = &mut out.0[offset + d];
            match (*o, *size) {
                (a, b) if a == b => {}
                (1, b) => *o = b,
                (_, 1) => {}
                _ => return None,
            }
        }
        Some(out)
    }

    /// Appends a dimension.
    pub fn push(&mut self, size: usize) {
        self.0.push(size);
    }

    /// The sizes, mutable.
    pub fn dims_mut(&mut self) -> &mut [usize] {
        &mut self.0
    }
}

impl Clone for Shape {
    #[inline]
    fn clone(&self) -> Shape {
        Shape(duplicate(&self.0))
    }
}

/// A clone that avoids a call of `memcpy`. Every new tensor needs two such clones.
#[inline]
pub(super) fn duplicate<T: Copy>(numbers: &SmallVec<[T; INLINE]>) -> SmallVec<[T; INLINE]> {
    if numbers.spilled() {
        return numbers.clone();
    }
    // SAFETY: the elements are `Copy` and inline, so the copy shares no heap memory with the original.
    unsafe { std::ptr::read(numbers) }
}

impl Deref for Shape {
    type Target = [usize];
    #[inline]
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Shape {
        shape.clone()
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(dims))
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Shape {
        Shape(dims.into())
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        Shape(SmallVec::from_slice(&dims))
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Shape {
        Shape(iter.into_iter().collect())
    }
}

impl fmt::Display for Shape {
    /// Formats the shape as a Python tuple.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dims() {
            [one] => write!(f, "({one},)"),
            dims => {
                let sizes: Vec<_> = dims.iter().map(usize::to_string).collect();
                write!(f, "({})", sizes.join(", "))
            }
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The position of an axis. A negative axis counts from the end of the `rank` axes.
pub fn normalize_axis(axis: i64, rank: usize) -> Result<usize> {
    let n = rank as i64;
    if (-n..n).contains(&axis) {
        Ok((if axis < 0 { axis + n } else { axis }) as usize)
    } else if rank == 0 {
        Err(Error::index(format!("axis {axis} is out of range: the tensor has no dimensions")))
    } else {
        Err(Error::index(format!(
            "axis {axis} is out of range for a tensor of {}: use {} to {}",
            counted(rank, "dimension"),
            -n,
            n - 1
        )))
    }
}
