//! Reductions over one axis, several, or (by default) all. `keepdims=True` leaves the reduced axes with size 1.

use minitensor::kernels::rows;
use minitensor::prelude::*;

use crate::column;

/// The sum of every row; [`sum()`] chooses the dtype to add up in.
#[custom_op(name = "row::sum", shape = (x: [.., n]) -> [..], axis = None, backward = |d| { x: d.unsqueeze(-1) })]
pub fn row_sum<T: Num>(x: &[T], out: &mut T) {
    *out = rows::sum(x);
}

/// The product of every row.
#[custom_op(
    name = "row::prod", shape = (x: [.., n]) -> [..], axis = None,
    backward = |d| { x: d.unsqueeze(-1) * row::prod_of_others(x) },
)]
pub fn row_prod<T: Num>(x: &[T], out: &mut T) {
    *out = rows::prod(x);
}

/// For every element of a row, the product of the others.
#[custom_op(
    name = "row::prod_of_others", shape = (x: [.., n]) -> [.., n],
    backward = |d| { x: row::prod_of_others_vjp(d, x) },
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
    for (j, o) in out.iter_mut().enumerate() {
        let mut total = T::zero();
        for (i, di) in d.iter().enumerate().filter(|(i, _)| *i != j) {
            let mut product = *di;
            for (_, v) in x.iter().enumerate().filter(|(k, _)| *k != i && *k != j) {
                product *= *v;
            }
            total += product;
        }
        *o = total;
    }
}

/// The dtype that sums and products are gathered in: integers and truth values in 64 bits.
fn gathered(x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    let wide = match x.dtype() {
        DType::Bool | DType::I8 | DType::I16 | DType::I32 => DType::I64,
        DType::U8 | DType::U16 | DType::U32 => DType::U64,
        other => other,
    };
    crate::conversion::astype::call(x, dtype.unwrap_or(wide))
}

/// The sum. Integers and truth values add up in 64 bits; floats pairwise.
#[custom_op]
pub fn sum(
    x: &Tensor,
    axis: Option<&[i64]>,
    #[default = false] keepdims: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let x = gathered(x, dtype)?;
    match column::leading(&x, axis)? {
        Some(count) => column::sum_over(&x, count, keepdims),
        None => row_sum::call(&x, axis, keepdims),
    }
}

/// The product. Integers and truth values multiply in 64 bits.
#[custom_op]
pub fn prod(
    x: &Tensor,
    axis: Option<&[i64]>,
    #[default = false] keepdims: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    row_prod::call(&gathered(x, dtype)?, axis, keepdims)
}

/// The arithmetic mean; NaN of nothing.
#[custom_op(shape = (x: [.., n]) -> [..], axis = None, backward = |d| { x: d.unsqueeze(-1) / n })]
pub fn mean<T: Field>(x: &[T], out: &mut T) {
    *out = rows::sum(x) / minitensor::kernels::lit(x.len());
}

/// The largest element; NaN if there is one. Equal ones share the gradient evenly.
#[custom_op(
    alias = "amax", shape = (x: [.., n]) -> [..] where n > 0, axis = None,
    backward = |d| {
        let hit = x == out.unsqueeze(-1);
        x: d.unsqueeze(-1) * hit / sum(hit, -1, true),
    },
)]
pub fn max<T: Real>(x: &[T], out: &mut T) {
    *out = rows::max(x).unwrap_or_default();
}

/// The smallest element; NaN if there is one. Equal ones share the gradient evenly.
#[custom_op(
    alias = "amin", shape = (x: [.., n]) -> [..] where n > 0, axis = None,
    backward = |d| {
        let hit = x == out.unsqueeze(-1);
        x: d.unsqueeze(-1) * hit / sum(hit, -1, true),
    },
)]
pub fn min<T: Real>(x: &[T], out: &mut T) {
    *out = rows::min(x).unwrap_or_default();
}

/// Where the (first) largest element stands; the first NaN, if there is one. Over several axes: counted in row-major order.
#[custom_op(shape = (x: [.., n]) -> [..] where n > 0, axis = None, backward = none)]
pub fn argmax<T: Real>(x: &[T], out: &mut i64) {
    *out = rows::argmax(x).unwrap_or_default() as i64;
}

/// Where the (first) smallest element stands; the first NaN, if there is one. Over several axes: counted in row-major order.
#[custom_op(shape = (x: [.., n]) -> [..] where n > 0, axis = None, backward = none)]
pub fn argmin<T: Real>(x: &[T], out: &mut i64) {
    *out = rows::argmin(x).unwrap_or_default() as i64;
}

/// Whether any element is true; a number is true unless it is 0.
#[custom_op(shape = (x: [.., n]) -> [..], axis = None, backward = none)]
pub fn any<T: Element>(x: &[T], out: &mut bool) {
    *out = x.iter().any(|v| v.truthy());
}

/// Whether all elements are true.
#[custom_op(shape = (x: [.., n]) -> [..], axis = None, backward = none)]
pub fn all<T: Element>(x: &[T], out: &mut bool) {
    *out = x.iter().all(|v| v.truthy());
}

/// How many elements are not 0.
#[custom_op(shape = (x: [.., n]) -> [..], axis = None, backward = none)]
pub fn count_nonzero<T: Element>(x: &[T], out: &mut i64) {
    *out = x.iter().filter(|v| v.truthy()).count() as i64;
}

/// The variance: the sum of squared distances from the mean, divided by `n − correction`.
#[custom_op(shape = (x: [.., n]) -> [..] where correction >= 0.0, axis = None)]
pub fn var<R: Row>(x: R, #[default = 0.0] correction: f64) -> R {
    x.var(correction)
}

/// The standard deviation, the root of [`var()`].
#[custom_op]
pub fn std(
    x: &Tensor,
    #[default = 0.0] correction: f64,
    axis: Option<&[i64]>,
    #[default = false] keepdims: bool,
) -> Result<Tensor> {
    crate::exponential::sqrt::call(&var::call(x, correction, axis, keepdims)?)
}

/// `ln Σ eˣ`, without overflow.
#[custom_op(shape = (x: [.., n]) -> [..], axis = None)]
pub fn logsumexp<R: Row>(x: R) -> R {
    x.logsumexp()
}
