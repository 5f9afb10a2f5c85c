//! [`AxisLayout`]: the axes that the caller chose, which become the last axis for the body.

use std::cmp::Reverse;

use smallvec::SmallVec;

use crate::attr::Attr;
use crate::error::{Error, Result};
#[cfg(not(feature = "engine"))]
use crate::guest::reshape;
use crate::op::OpDef;
#[cfg(feature = "engine")]
use crate::op::by_name::reshape;
use crate::tensor::{Shape, Strides, Tensor, normalize_axis};

/// The axes of an argument that form the core dimension.
#[derive(Clone, Debug)]
pub struct AxisLayout {
    /// The core axes of an argument that has the core dimension, sorted.
    axes: SmallVec<[usize; 4]>,
    keepdims: bool,
    rank: usize,
}

impl AxisLayout {
    /// The axes of a call whose arguments with the core dimension have this rank; `None` if the op has no `axis`.
    pub fn of(op: &OpDef, attrs: &[Attr], rank: usize) -> Result<Option<AxisLayout>> {
        let Some(axis) = op.axis else { return Ok(None) };
        let context = |e: Error| e.context(format!("op '{}'", op.name));
        let mut axes: SmallVec<[usize; 4]> = SmallVec::new();
        match &attrs[axis.attr as usize] {
            Attr::Int(a) => axes.push(normalize_axis(*a, rank).map_err(context)?),
            Attr::Ints(list) => {
                for a in list.iter() {
                    axes.push(normalize_axis(*a, rank).map_err(context)?);
                }
                axes.sort_unstable();
                if axes.windows(2).any(|w| w[0] == w[1]) {
                    return Err(Error::value(format!("op '{}': axis {list:?} contains an axis twice", op.name)));
                }
            }
            _ => axes.extend(0..rank),
        }
        let keepdims = axis.keepdims.is_some_and(|k| attrs[k as usize] == Attr::Bool(true));
        Ok(Some(AxisLayout { axes, keepdims, rank }))
    }

    /// The batch axes, then the core axes.
    fn order(&self) -> impl Iterator<Item = usize> + '_ {
        self.others().chain(self.axes.iter().copied())
    }

    fn others(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.rank).filter(|a| !self.axes.contains(a))
    }

    fn is_moved(&self) -> bool {
        self.order().enumerate().any(|(i, a)| i != a)
    }

    /// The core axes.
    pub fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// Whether the core axes are in the order in which they are in memory.
    pub fn are_in_order_of_memory(&self, tensor: &Tensor) -> bool {
        self.axes.is_sorted_by_key(|a| Reverse(tensor.strides()[*a].unsigned_abs()))
    }

    /// Orders the core axes as in memory, for ops whose results do not depend on the order of elements.
    pub fn put_in_order_of_memory(&mut self, tensor: &Tensor) {
        self.axes.sort_by_key(|a| Reverse(tensor.strides()[*a].unsigned_abs()));
    }

    /// The number of core axes.
    pub fn width(&self) -> usize {
        self.axes.len()
    }

    /// The sizes and strides of an argument with its core axes last. They are not flattened.
    pub fn layout(&self, tensor: &Tensor) -> (Shape, Strides) {
        (self.order().map(|a| tensor.shape()[a]).collect(), self.order().map(|a| tensor.strides()[a]).collect())
    }

    /// The sizes and strides of an output without the core dimension, without the axes of size 1 of `keepdims`.
    pub fn output_layout(&self, tensor: &Tensor) -> (Shape, Strides) {
        let axes = || (0..tensor.ndim()).filter(|a| !self.keepdims || !self.axes.contains(a));
        (axes().map(|a| tensor.shape()[a]).collect(), axes().map(|a| tensor.strides()[a]).collect())
    }

    /// The sizes of the batch axes.
    pub fn batch(&self, shape: &[usize]) -> Shape {
        self.others().map(|a| shape[a]).collect()
    }

    /// The sizes of the core axes.
    pub fn core(&self, shape: &[usize]) -> SmallVec<[usize; 4]> {
        self.axes.iter().map(|a| shape[*a]).collect()
    }

    /// The shape of an output. `batch` are the sizes of the batch axes, `core` those of the core axes if the output has them.
    pub fn output_shape(&self, batch: &[usize], core: Option<&[usize]>) -> Shape {
        let mut batch = batch.iter().copied();
        (0..self.rank)
            .filter_map(|a| match (self.axes.iter().position(|x| *x == a), core) {
                (None, _) => batch.next(),
                (Some(i), Some(core)) => Some(core[i]),
                (Some(_), None) => self.keepdims.then_some(1),
            })
            .collect()
    }

    /// An argument with the core dimension, with the core axes last, flattened into one. Recorded.
    pub fn to_last(&self, tensor: &Tensor) -> Result<Tensor> {
        let moved = if self.is_moved() {
            reshape::permute(tensor, self.order().map(|a| a as i64).collect())?
        } else {
            tensor.clone()
        };
        if self.axes.len() == 1 {
            return Ok(moved);
        }
        let batch = self.rank - self.axes.len();
        let mut sizes: Vec<i64> = moved.shape()[..batch].iter().map(|s| *s as i64).collect();
        sizes.push(moved.shape()[batch..].iter().product::<usize>() as i64);
        reshape::reshape(&moved, sizes)
    }

    /// A result in this order, moved back to the caller's order of axes. `shape` is its shape in that order. Recorded.
    pub fn restore(&self, tensor: &Tensor, shape: &[usize]) -> Result<Tensor> {
        let sizes: Vec<i64> = self.order().map(|a| shape[a] as i64).collect();
        let cut = if self.axes.len() == 1 { tensor.clone() } else { reshape::reshape(tensor, sizes)? };
        if !self.is_moved() {
            return Ok(cut);
        }
        let mut inverse = vec![0i64; self.rank];
        self.order().enumerate().for_each(|(to, from)| inverse[from] = to as i64);
        reshape::permute(&cut, inverse)
    }

    /// A result without the core dimension, with the axes of size 1 of `keepdims`. Recorded.
    pub fn keep(&self, tensor: &Tensor) -> Result<Tensor> {
        if !self.keepdims {
            return Ok(tensor.clone());
        }
        let sizes = self.output_shape(tensor.shape(), None);
        reshape::reshape(tensor, sizes.iter().map(|s| *s as i64).collect())
    }

    /// An output without the core dimension, without the axes of size 1 of `keepdims`. Recorded.
    pub fn drop_kept(&self, tensor: &Tensor) -> Result<Tensor> {
        if !self.keepdims {
            return Ok(tensor.clone());
        }
        let sizes: Vec<i64> = self.others().map(|a| tensor.shape()[a] as i64).collect();
        reshape::reshape(tensor, sizes)
    }
}
