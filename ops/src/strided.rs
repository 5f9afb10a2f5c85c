//! Reductions of tensors that aren't contiguous, if the result doesn't depend on the order of the elements. They read
//! in memory order, and part by part if a row would otherwise be copied as a whole.

use minitensor::autograd::is_grad_enabled;
use minitensor::kernels::Const;
use minitensor::prelude::*;
use minitensor::tensor::normalize_axis;

use crate::arithmetic::{divide, multiply};
use crate::conversion::astype;
use crate::indexing::slice;
use crate::joining::stack;
use crate::shape::{permute_dims, reshape};

/// The maximum size in bytes of strided rows that are copied before they are reduced.
const COPIED: usize = 1 << 20;
/// Larger rows are reduced in parts of this number of elements.
const PART: usize = 1 << 16;

/// A reduction over some axes, or all.
pub type Reduction = fn(&Tensor, Option<&[i64]>, bool) -> Result<Tensor>;

/// How a reduction counts an element of memory that appears several times in a tensor.
#[derive(Clone, Copy, PartialEq)]
pub enum Repeats {
    /// Once.
    Once,
    /// Each time; all of them together are their number times one of them.
    Times,
    /// Each time, separately.
    Each,
}

/// The parts of a reduction: for a tensor, and for the results of its parts.
pub struct StridedReduction {
    pub whole: Reduction,
    pub parts: Reduction,
    pub repeats: Repeats,
    /// True if the result of a part is rounded in a 16-bit format.
    pub is_rounded: bool,
}

impl StridedReduction {
    /// Runs the reduction.
    pub fn reduce(&self, x: &Tensor, axis: Option<&[i64]>, keepdims: bool) -> Result<Tensor> {
        let mut axes: Vec<usize> = match axis {
            _ if x.is_contiguous() => return (self.whole)(x, axis, keepdims),
            Some(axes) => axes.iter().map(|a| normalize_axis(*a, x.ndim())).collect::<Result<_>>()?,
            None => (0..x.ndim()).collect(),
        };
        axes.sort_unstable();
        // Falls back to the general path, which reports wrong arguments.
        if x.numel() == 0 || axes.windows(2).any(|w| w[0] == w[1]) {
            return (self.whole)(x, axis, keepdims);
        }
        let given: Vec<i64> = axes.iter().map(|a| *a as i64).collect();
        // Equal elements of one row share a gradient; equal elements of several parts would not.
        if self.repeats == Repeats::Once && is_recorded(x) {
            return (self.whole)(&in_order_of_memory(x, &axes)?, Some(&given), keepdims);
        }
        let (x, times) = self.without_repeats(x, &axes)?;
        let reduced = self.in_parts(&in_order_of_memory(&x, &axes)?, &given, keepdims)?;
        if times == 1 {
            return Ok(reduced);
        }
        let times = Tensor::from_const(Const::Int(times), reduced.dtype().compute(), reduced.device())?;
        astype::call(&multiply::call(&reduced, &times)?, reduced.dtype())
    }

    /// The tensor with each repeated element of memory once, and the number of repetitions. A gradient would have to
    /// reach all of them.
    fn without_repeats(&self, x: &Tensor, axes: &[usize]) -> Result<(Tensor, i128)> {
        let is_kept = self.repeats == Repeats::Each || self.is_rounded && x.dtype().compute() != x.dtype();
        if is_kept || is_recorded(x) {
            return Ok((x.clone(), 1));
        }
        let (mut once, mut times) = (x.clone(), 1);
        for axis in axes.iter().filter(|a| x.strides()[**a] == 0 && x.shape()[**a] > 1) {
            once = once.slice_view(*axis as i64, 0, 1, 1)?;
            times *= if self.repeats == Repeats::Times { x.shape()[*axis] as i128 } else { 1 };
        }
        Ok((once, times))
    }

    fn in_parts(&self, x: &Tensor, axes: &[i64], keepdims: bool) -> Result<Tensor> {
        let core = || axes.iter().map(|a| *a as usize);
        let elements: usize = core().map(|a| x.shape()[a]).product();
        let longest = core().max_by_key(|a| x.shape()[*a]);
        let loses = self.is_rounded && x.dtype().compute() != x.dtype();
        let (Some(longest), false) = (longest, is_row(x, axes) || loses || elements * x.dtype().size() <= COPIED)
        else {
            return (self.whole)(x, Some(axes), keepdims);
        };
        let n = x.shape()[longest];
        let axis = longest as i64;
        if n <= PART {
            let parts = (self.whole)(x, Some(&[axis]), true)?;
            return (self.parts)(&parts, Some(axes), keepdims);
        }
        let even = (n / PART * PART) as i64;
        let mut sizes: Vec<i64> = x.shape().iter().map(|s| *s as i64).collect();
        sizes.splice(longest..=longest, [even / PART as i64, PART as i64]);
        let cut = reshape::call(&slice::call(x, axis, None, Some(even), 1)?, &sizes)?;
        let parts = (self.whole)(&cut, Some(&[axis + 1]), false)?;
        let reduced = (self.parts)(&parts, Some(axes), keepdims)?;
        if even == n as i64 {
            return Ok(reduced);
        }
        let rest = self.in_parts(&slice::call(x, axis, Some(even), None, 1)?, axes, keepdims)?;
        (self.parts)(&stack::call(&[&reduced, &rest], 0)?, Some(&[0]), false)
    }
}

/// The mean by `whole`, or by `sum` if the elements aren't contiguous.
pub fn mean(x: &Tensor, axis: Option<&[i64]>, keepdims: bool, whole: Reduction, sum: Reduction) -> Result<Tensor> {
    let is_rounded = !x.dtype().is_differentiable() || x.dtype().compute() != x.dtype();
    if is_rounded || x.numel() == 0 || x.is_contiguous() {
        return whole(x, axis, keepdims);
    }
    let sum = sum(x, axis, keepdims).map_err(|e| e.renamed("sum", "mean"))?;
    let count = Tensor::from_const(Const::Int((x.numel() / sum.numel()) as i128), x.dtype(), x.device())?;
    divide::call(&sum, &count)
}

fn is_recorded(x: &Tensor) -> bool {
    is_grad_enabled() && x.requires_grad()
}

/// Permutes the reduced axes so that neighbours in memory are neighbours in a row.
fn in_order_of_memory(x: &Tensor, axes: &[usize]) -> Result<Tensor> {
    let mut ordered = axes.to_vec();
    ordered.sort_by_key(|a| std::cmp::Reverse(x.strides()[*a].unsigned_abs()));
    if ordered == axes {
        return Ok(x.clone());
    }
    let mut order: Vec<i64> = (0..x.ndim() as i64).collect();
    axes.iter().zip(&ordered).for_each(|(to, from)| order[*to] = *from as i64);
    permute_dims::call(x, &order)
}

/// True if the elements along these axes are contiguous.
fn is_row(x: &Tensor, axes: &[i64]) -> bool {
    let mut expected = 1;
    axes.iter().rev().map(|a| *a as usize).filter(|a| x.shape()[*a] != 1).all(|a| {
        let fits = x.strides()[a] == expected;
        expected *= x.shape()[a] as isize;
        fits
    })
}
