//! Reductions over one axis, several, or (by default) all. `keepdims=True` leaves the reduced axes with size 1.

use minitensor::kernels::{rows, stop};
use minitensor::prelude::*;

use crate::column::{self, reduce};
use crate::strided::{self, Repeats, StridedReduction};

/// The sum of every row; [`sum()`] chooses the dtype of the sum.
#[custom_op(
    name = "row::sum", shape = (x: [.., n]) -> [..], axis = None, program = Row::sum,
    backward = |d| { x: d.unsqueeze(-1) },
)]
pub fn row_sum<T: Num>(x: &[T], out: &mut T) {
    *out = rows::sum(x);
}

/// The product of every row.
#[custom_op(
    name = "row::prod", shape = (x: [.., n]) -> [..], axis = None,
    backward = |d| { x: d.unsqueeze(-1) * row::prod_of_others(x).conj() },
)]
pub fn row_prod<T: Num>(x: &[T], out: &mut T) {
    *out = rows::prod(x);
}

/// For every element of a row, the product of the others.
#[custom_op(
    name = "row::prod_of_others", shape = (x: [.., n]) -> [.., n],
    backward = |d| { x: row::prod_of_others_vjp(d, x.conj()) },
)]
pub fn row_prod_of_others<T: Num>(x: &[T], out: &mut [T]) {
    let mut before = T::one();
    for (o, v) in out.iter_mut().zip(x) {
        *o = before;
        before *= *v;
    }
    let mut after = T::one();
    for (o, v) in out.iter_mut().zip(x).rev() {
        *o *= after;
        after *= *v;
    }
}

/// The gradient of [`row_prod_of_others()`]: `Σᵢ≠ⱼ dᵢ Πₖ≠ᵢⱼ xₖ`.
#[custom_op(name = "row::prod_of_others_vjp", shape = (d: [.., n], x: [.., n]) -> [.., n], backward = none)]
pub fn row_prod_of_others_vjp<T: Num>(d: &[T], x: &[T], out: &mut [T]) {
    // With `before` = Πₖ<ⱼ xₖ, the terms with i < j are `after` · Σᵢ<ⱼ dᵢ Πₖ<ⱼ,ₖ≠ᵢ xₖ, and that sum follows from the one
    // for j - 1. So do, from the end, the terms with i > j.
    let mut products = stop::filled(T::one(), x.len());
    let (mut before, mut sum) = (T::one(), T::zero());
    for (j, o) in out.iter_mut().enumerate() {
        (*o, products[j]) = (sum, before);
        sum = sum * x[j] + d[j] * before;
        before *= x[j];
    }
    let (mut after, mut sum) = (T::one(), T::zero());
    for (j, o) in out.iter_mut().enumerate().rev() {
        *o = *o * after + products[j] * sum;
        sum = sum * x[j] + d[j] * after;
        after *= x[j];
    }
}

/// Converts to the dtype in which sums and products are computed: 64 bits for integers and booleans.
pub(crate) fn in_sum_dtype(x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    let wide = match x.dtype() {
        DType::Bool | DType::I8 | DType::I16 | DType::I32 => DType::I64,
        DType::U8 | DType::U16 | DType::U32 => DType::U64,
        other => other,
    };
    let dtype = dtype.unwrap_or(wide);
    if x.dtype() == dtype { Ok(x.clone()) } else { crate::conversion::astype::call(x, dtype) }
}

/// The sum. Integers and booleans are added in 64 bits; floats are added pairwise.
#[custom_op]
pub fn sum(
    x: &Tensor,
    axis: Option<&[i64]>,
    #[default = false] keepdims: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let x = in_sum_dtype(x, dtype)?;
    total(&x, axis, keepdims)
}

/// The sum in the dtype of the elements.
fn total(x: &Tensor, axis: Option<&[i64]>, keepdims: bool) -> Result<Tensor> {
    let whole =
        |x: &Tensor, axis: Option<&[i64]>, keepdims| reduce(x, axis, keepdims, column::sum::call, row_sum::call);
    StridedReduction { whole, parts: whole, repeats: Repeats::Times, is_rounded: true }.reduce(x, axis, keepdims)
}

/// The product. Integers and booleans are multiplied in 64 bits.
#[custom_op]
pub fn prod(
    x: &Tensor,
    axis: Option<&[i64]>,
    #[default = false] keepdims: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let whole =
        |x: &Tensor, axis: Option<&[i64]>, keepdims| reduce(x, axis, keepdims, column::prod::call, row_prod::call);
    let steps = StridedReduction { whole, parts: whole, repeats: Repeats::Each, is_rounded: true };
    steps.reduce(&in_sum_dtype(x, dtype)?, axis, keepdims)
}

/// The mean of every row; [`mean()`] chooses the axes.
#[custom_op(
    name = "row::mean", shape = (x: [.., n]) -> [..], axis = None, program = Row::mean,
    backward = |d| { x: d.unsqueeze(-1) / n },
)]
pub fn row_mean<T: Field>(x: &[T], out: &mut T) {
    *out = rows::sum(x).divide(minitensor::kernels::lit(x.len()));
}

/// The arithmetic mean; NaN if there are no elements.
#[custom_op]
pub fn mean(x: &Tensor, axis: Option<&[i64]>, #[default = false] keepdims: bool) -> Result<Tensor> {
    let whole =
        |x: &Tensor, axis: Option<&[i64]>, keepdims| reduce(x, axis, keepdims, column::mean::call, row_mean::call);
    strided::mean(x, axis, keepdims, whole, total)
}

/// The largest element of every row; [`max()`] chooses the axes.
#[custom_op(name = "row::max", shape = (x: [.., n]) -> [..] where n > 0, axis = None, program = Row::max)]
pub fn row_max<T: Real>(x: &[T], out: &mut T) {
    *out = rows::max(x).unwrap_or_default();
}

/// The largest element, or NaN if there is one. Equal elements share the gradient evenly.
#[custom_op(alias = "amax")]
pub fn max(x: &Tensor, axis: Option<&[i64]>, #[default = false] keepdims: bool) -> Result<Tensor> {
    let whole =
        |x: &Tensor, axis: Option<&[i64]>, keepdims| reduce(x, axis, keepdims, column::max::call, row_max::call);
    let steps = StridedReduction { whole, parts: whole, repeats: Repeats::Once, is_rounded: false };
    steps.reduce(x, axis, keepdims)
}

/// The smallest element of every row; [`min()`] chooses the axes.
#[custom_op(name = "row::min", shape = (x: [.., n]) -> [..] where n > 0, axis = None, program = Row::min)]
pub fn row_min<T: Real>(x: &[T], out: &mut T) {
    *out = rows::min(x).unwrap_or_default();
}

/// The smallest element, or NaN if there is one. Equal elements share the gradient evenly.
#[custom_op(alias = "amin")]
pub fn min(x: &Tensor, axis: Option<&[i64]>, #[default = false] keepdims: bool) -> Result<Tensor> {
    let whole =
        |x: &Tensor, axis: Option<&[i64]>, keepdims| reduce(x, axis, keepdims, column::min::call, row_min::call);
    let steps = StridedReduction { whole, parts: whole, repeats: Repeats::Once, is_rounded: false };
    steps.reduce(x, axis, keepdims)
}

/// The index of the largest element of every row; [`argmax()`] chooses the axes.
#[custom_op(
    name = "row::argmax", shape = (x: [.., n]) -> [..] where n > 0, axis = None, backward = none,
)]
pub fn row_argmax<T: Real>(x: &[T], out: &mut i64) {
    *out = rows::argmax(x).unwrap_or_default() as i64;
}

/// The index of the first NaN or, without any, of the first largest element. Over several axes: in row-major order.
#[custom_op(backward = none)]
pub fn argmax(x: &Tensor, axis: Option<&[i64]>, #[default = false] keepdims: bool) -> Result<Tensor> {
    reduce(x, axis, keepdims, column::argmax::call, row_argmax::call)
}

/// The index of the smallest element of every row; [`argmin()`] chooses the axes.
#[custom_op(
    name = "row::argmin", shape = (x: [.., n]) -> [..] where n > 0, axis = None, backward = none,
)]
pub fn row_argmin<T: Real>(x: &[T], out: &mut i64) {
    *out = rows::argmin(x).unwrap_or_default() as i64;
}

/// The index of the first NaN or, without any, of the first smallest element. Over several axes: in row-major order.
#[custom_op(backward = none)]
pub fn argmin(x: &Tensor, axis: Option<&[i64]>, #[default = false] keepdims: bool) -> Result<Tensor> {
    reduce(x, axis, keepdims, column::argmin::call, row_argmin::call)
}

/// True if any element of a row is true; [`any()`] chooses the axes.
#[custom_op(
    name = "row::any", shape = (x: [.., n]) -> [..], axis = None, backward = none,
)]
pub fn row_any<T: Element>(x: &[T], out: &mut bool) {
    *out = x.iter().any(|v| v.truthy());
}

/// True if any element is true; a number is true unless it is 0.
#[custom_op(backward = none)]
pub fn any(x: &Tensor, axis: Option<&[i64]>, #[default = false] keepdims: bool) -> Result<Tensor> {
    let whole =
        |x: &Tensor, axis: Option<&[i64]>, keepdims| reduce(x, axis, keepdims, column::any::call, row_any::call);
    let steps = StridedReduction { whole, parts: whole, repeats: Repeats::Once, is_rounded: false };
    steps.reduce(x, axis, keepdims)
}

/// True if all elements of a row are true; [`all()`] chooses the axes.
#[custom_op(
    name = "row::all", shape = (x: [.., n]) -> [..], axis = None, backward = none,
)]
pub fn row_all<T: Element>(x: &[T], out: &mut bool) {
    *out = x.iter().all(|v| v.truthy());
}

/// True if all elements are true; a number is true unless it is 0.
#[custom_op(backward = none)]
pub fn all(x: &Tensor, axis: Option<&[i64]>, #[default = false] keepdims: bool) -> Result<Tensor> {
    let whole =
        |x: &Tensor, axis: Option<&[i64]>, keepdims| reduce(x, axis, keepdims, column::all::call, row_all::call);
    let steps = StridedReduction { whole, parts: whole, repeats: Repeats::Once, is_rounded: false };
    steps.reduce(x, axis, keepdims)
}

/// The number of nonzero elements of every row; [`count_nonzero()`] chooses the axes.
#[custom_op(
    name = "row::count_nonzero", shape = (x: [.., n]) -> [..], axis = None, backward = none,
)]
pub fn row_count_nonzero<T: Element>(x: &[T], out: &mut i64) {
    *out = x.iter().filter(|v| v.truthy()).count() as i64;
}

/// The number of nonzero elements.
#[custom_op(backward = none)]
pub fn count_nonzero(x: &Tensor, axis: Option<&[i64]>, #[default = false] keepdims: bool) -> Result<Tensor> {
    let whole = |x: &Tensor, axis: Option<&[i64]>, keepdims| {
        reduce(x, axis, keepdims, column::count_nonzero::call, row_count_nonzero::call)
    };
    let steps = StridedReduction { whole, parts: total, repeats: Repeats::Times, is_rounded: false };
    steps.reduce(x, axis, keepdims)
}

/// The variance: the sum of squared distances from the mean, divided by `n − correction`.
#[custom_op(shape = (x: [.., n]) -> [..] where correction >= 0.0, axis = None, precompiled)]
pub fn var<R: Row>(x: R, #[default = 0.0] correction: f64) -> R {
    x.var(correction)
}

/// The standard deviation, the square root of [`var()`].
#[custom_op]
pub fn std(
    x: &Tensor,
    axis: Option<&[i64]>,
    #[default = 0.0] correction: f64,
    #[default = false] keepdims: bool,
) -> Result<Tensor> {
    crate::exponential::sqrt::call(&var::call(x, axis, correction, keepdims)?)
}

/// `ln Σ eˣ`, without overflow.
#[custom_op(shape = (x: [.., n]) -> [..], axis = None, precompiled)]
pub fn logsumexp<R: Row>(x: R) -> R {
    x.logsumexp()
}
