//! Reductions of tensors that are not contiguous, if the results for parts of a row combine. They read in the order of memory, count an
//! element that is repeated only once, and compute a long row in parts instead of copying it as a whole.

use std::cmp::Reverse;

use minitensor_kernels::Const;
use minitensor_schema::Combine;
use smallvec::SmallVec;

use super::backend::compute;
use super::check::Checked;
use crate::attr::Attr;
use crate::backend::{CallShapes, Wanted};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::lazy;
use crate::op::call::Value;
use crate::op::call::shape_rule::{Dim, Predicate, Relation};
use crate::op::{Axis, OpRef, bind, registry};
use crate::precision::Wide;
use crate::tensor::Tensor;

/// The maximum size in bytes of a strided row that is copied before it is reduced.
const COPIED: usize = 1 << 20;
/// The size from which the length of an axis does not matter.
const LONG: usize = 64;
/// A longer axis is reduced in parts of this number of elements.
const PART: usize = 1 << 16;

/// A call of a reduction.
struct Reduction<'a> {
    op: &'a OpRef,
    attrs: &'a [Attr],
    checked: &'a Checked<'a>,
    axis: Axis,
    combine: Combine,
    /// The dtype of the results.
    computed: DType,
    /// Whether rows are converted to it.
    converts: bool,
}

/// The result for a tensor whose rows would be copied as a whole; `None` if the loop over cells needs no other order.
pub fn run(
    op: &OpRef,
    x: Option<&Tensor>,
    attrs: &[Attr],
    checked: &Checked<'_>,
    shapes: &CallShapes,
) -> Result<Option<Tensor>> {
    let (Some(x), Some(combine), Some(axis), Some(axes)) = (x, op.combine, op.axis, &shapes.axes) else {
        return Ok(None);
    };
    let computed = checked.dtypes.first().copied().unwrap_or(x.dtype());
    let converts = ![computed, computed.compute()].contains(&x.dtype());
    let reduction = Reduction { op, attrs, checked, axis, combine, computed, converts };
    if x.numel() == 0 || reduction.is_in_place(x, axes.axes()) || !op.predicates.iter().all(holds_for_parts) {
        return Ok(None);
    }
    let (once, repeats) = reduction.without_repeats(x, axes.axes())?;
    let (once, converts) = if converts && is_short(&once, axes.axes()) {
        (once.cast(computed.compute())?, false)
    } else {
        (once, converts)
    };
    let reduction = Reduction { converts, ..reduction };
    let is_copied = reduction.is_whole(&once, axes.axes());
    if once.is_same_window(x) && is_copied {
        return Ok(None);
    }
    let dtype = op.stored_dtype_of(&op.outputs[0], &checked.dtypes, attrs)?;
    let shape: SmallVec<[i64; 4]> = shapes.outputs[0].iter().map(|n| *n as i64).collect();
    lazy::call::at_once(|| {
        let _wide = Wide::new();
        let out = match is_copied {
            true => reduction.whole(&once, axes.axes())?,
            false => reduction.in_parts(&once, axes.axes())?,
        };
        let out = if repeats == 1 { out } else { times(&out, Const::Int(repeats))? };
        let out = if out.dtype() == dtype { out } else { out.cast(dtype)? };
        out.reshape_view(&shape).map(Some)
    })
}

/// Whether a condition that holds for a row holds for its parts.
fn holds_for_parts(condition: &Predicate) -> bool {
    fn has_size(dim: &Dim) -> bool {
        match dim {
            Dim::Name(_) => true,
            Dim::Op(_, sides) => sides.iter().any(has_size),
            Dim::Int(_) | Dim::Float(_) | Dim::Attr(_) => false,
        }
    }
    let is_not_empty = matches!(
        (&condition.left, condition.relation, &condition.right),
        (Dim::Name(_), Relation::Greater, Dim::Int(0))
    );
    is_not_empty || !has_size(&condition.left) && !has_size(&condition.right)
}

impl Reduction<'_> {
    /// Whether rows are read where they are.
    fn is_in_place(&self, x: &Tensor, axes: &[usize]) -> bool {
        // Rows of half floats are converted while they are read, if they have one axis.
        let is_read = axes.len() <= 1 || x.dtype().compute() == x.dtype();
        !self.converts && is_read && is_contiguous(x, axes)
    }

    /// Whether rows are reduced as a whole: in place, or after a copy.
    fn is_whole(&self, x: &Tensor, axes: &[usize]) -> bool {
        self.is_in_place(x, axes) || row(x, axes).saturating_mul(x.dtype().size().max(self.computed.size())) <= COPIED
    }

    /// The tensor with each repeated element of memory once, and the number of repetitions that the result is multiplied by.
    fn without_repeats(&self, x: &Tensor, axes: &[usize]) -> Result<(Tensor, i128)> {
        let (mut once, mut times) = (x.clone(), 1);
        // A complex infinity times a number is not a sum of infinities.
        if self.combine == Combine::Multiply || self.combine == Combine::Add && self.computed.is_complex() {
            return Ok((once, times));
        }
        for axis in axes.iter().filter(|a| x.strides()[**a] == 0 && x.shape()[**a] > 1) {
            once = once.slice_view(*axis as i64, 0, 1, 1)?;
            times *= if self.combine == Combine::Add { x.shape()[*axis] as i128 } else { 1 };
        }
        Ok((once, times))
    }

    /// Reduces one axis first: of those that are not short, the one whose elements are closest to each other.
    fn in_parts(&self, x: &Tensor, axes: &[usize]) -> Result<Tensor> {
        let order = |a: &usize| (x.shape()[*a].min(LONG), Reverse(x.strides()[*a].unsigned_abs()));
        let Some(axis) = axes.iter().copied().max_by_key(order) else { return self.whole(x, axes) };
        let n = x.shape()[axis];
        if self.is_whole(x, axes) {
            return self.whole(x, axes);
        }
        if axes.len() > 1 && is_contiguous(x, axes) {
            return self.in_parts(&flat(x, axes)?, &[x.ndim() - axes.len()]);
        }
        let part = n.min(PART);
        let even = n / part * part;
        let mut sizes: Vec<i64> = x.shape().iter().map(|s| *s as i64).collect();
        sizes.splice(axis..=axis, [(even / part) as i64, part as i64]);
        let cut = x.slice_view(axis as i64, 0, even, 1)?.reshape_view(&sizes)?;
        let parts = self.whole(&cut, &[axis + 1])?;
        let out = reduce(self.combine, &parts, axes)?;
        if even == n {
            return Ok(out);
        }
        let rest = self.in_parts(&x.slice_view(axis as i64, even, n - even, 1)?, axes)?;
        pair(self.combine, (&out, even), (&rest, n - even))
    }

    /// The op itself, along some axes.
    fn whole(&self, x: &Tensor, axes: &[usize]) -> Result<Tensor> {
        let mut attrs = self.attrs.to_vec();
        attrs[self.axis.attr as usize] = match (self.axis.many, axes) {
            (false, [axis]) => Attr::Int(*axis as i64),
            _ => Attr::Ints(axes.iter().map(|a| *a as i64).collect::<Vec<_>>().into()),
        };
        if let Some(k) = self.axis.keepdims {
            attrs[k as usize] = Attr::Bool(false);
        }
        first(compute(self.op, &[Some(x)], &attrs, self.checked, Wanted::ALL)?)
    }
}

/// The results for two parts, each with its number of elements, as one.
pub fn pair(combine: Combine, (a, m): (&Tensor, usize), (b, n): (&Tensor, usize)) -> Result<Tensor> {
    if combine != Combine::Average {
        return call(combine.word(), &[a.into(), b.into()]);
    }
    let weight = |count: usize| Const::Float(count as f64 / (m + n) as f64);
    call("add", &[(&times(a, weight(m))?).into(), (&times(b, weight(n))?).into()])
}

/// The results for parts of equal size, along some axes, as one.
fn reduce(combine: Combine, parts: &Tensor, axes: &[usize]) -> Result<Tensor> {
    let axes = Attr::Ints(axes.iter().map(|a| *a as i64).collect::<Vec<_>>().into());
    call(combine.reduction(), &[parts.into(), Value::Attr(axes)])
}

/// A tensor times a number.
fn times(t: &Tensor, number: Const) -> Result<Tensor> {
    let number = Tensor::from_const(number, t.dtype().compute(), t.device())?;
    call("multiply", &[t.into(), (&number).into()])
}

/// Calls an op of loops, below what observes and records calls.
fn call(name: &str, args: &[Value<'_>]) -> Result<Tensor> {
    let op = registry::get(name)?;
    let (args, attrs) = bind(&op, args, &[])?;
    let checked = Checked::new(&op, &args, &attrs)?;
    first(compute(&op, &checked.inputs(), &attrs, &checked, Wanted::ALL)?)
}

fn first(outputs: super::Produced) -> Result<Tensor> {
    outputs.into_iter().next().flatten().ok_or_else(|| Error::runtime("internal error: a reduction without a result"))
}

/// The number of elements along these axes.
fn row(x: &Tensor, axes: &[usize]) -> usize {
    axes.iter().map(|a| x.shape()[*a]).product()
}

/// Whether rows are so short that it is faster to convert the whole tensor.
fn is_short(x: &Tensor, axes: &[usize]) -> bool {
    row(x, axes) < if is_contiguous(x, axes) { 16 } else { 128 }
}

/// These axes, along which the tensor is contiguous, as its last one.
fn flat(x: &Tensor, axes: &[usize]) -> Result<Tensor> {
    let mut inner: SmallVec<[usize; 4]> = axes.into();
    inner.sort_unstable_by_key(|a| (Reverse(x.strides()[*a]), x.shape()[*a]));
    let others = || (0..x.ndim()).filter(|a| !axes.contains(a));
    let order: SmallVec<[i64; 6]> = others().chain(inner).map(|a| a as i64).collect();
    let sizes: SmallVec<[i64; 6]> =
        others().map(|a| x.shape()[a]).chain([row(x, axes)]).map(|size| size as i64).collect();
    x.permute_view(&order)?.reshape_view(&sizes)
}

/// Whether the elements along these axes are next to each other in memory, in some order.
fn is_contiguous(x: &Tensor, axes: &[usize]) -> bool {
    let mut sides: SmallVec<[(isize, usize); 4]> =
        axes.iter().map(|a| (x.strides()[*a], x.shape()[*a])).filter(|(_, size)| *size != 1).collect();
    sides.sort_unstable_by_key(|(stride, _)| *stride);
    let mut expected = 1;
    sides.iter().all(|(stride, size)| {
        let fits = *stride == expected;
        expected *= *size as isize;
        fits
    })
}
