//! Reductions over one axis, several, or (by default) all. `keepdims=True` leaves the reduced axes with size 1.

use minitensor::kernels::{columns, stop};
use minitensor::prelude::*;

/// The sum. Integers and booleans are added in 64 bits; floats are added pairwise. `dtype` is the dtype to add in.
#[custom_op(
    shape = (x: [.., n]) -> [..], axis = None, linear = x, combine = add, program = RealRow::sum,
    backward = |d| { x: d.unsqueeze(-1) },
)]
pub fn sum<T: Num>(x: Columns<T>, dtype: Option<DType>, out: &mut [T]) {
    columns::sum(x, out);
}

/// The product. Integers and booleans are multiplied in 64 bits. `dtype` is the dtype to multiply in.
#[custom_op(
    shape = (x: [.., n]) -> [..], axis = None, combine = multiply,
    backward = |d| { x: d.unsqueeze(-1) * row::prod_of_others(x).conj() },
)]
pub fn prod<T: Num>(x: Columns<T>, dtype: Option<DType>, out: &mut [T]) {
    columns::prod(x, out);
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
#[custom_op(
    name = "row::prod_of_others_vjp", shape = (d: [.., n], x: [.., n]) -> [.., n], linear = d, program = prod_of_others_vjp,
)]
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

/// The same as a function of rows, which has derivatives of any order.
fn prod_of_others_vjp<R: Row>(d: R, x: R) -> R {
    let is_first = x.position().equal(R::zero());
    let is_last = (x.position() + R::one()).equal(x.count());
    let before = R::select(is_first, R::one(), x.cumprod().shift(1));
    let after = R::select(is_last, R::one(), x.reverse().cumprod().reverse().shift(-1));
    let above = (d * before).shift(1).recurrence(x.shift(1));
    let below = (d * after).shift(-1).reverse_recurrence(x.shift(-1));
    above * after + before * below
}

/// The arithmetic mean; NaN if there are no elements.
#[custom_op(
    shape = (x: [.., n]) -> [..], axis = None, linear = x, combine = average, program = Row::mean,
    backward = |d| { x: d.unsqueeze(-1) / n },
)]
pub fn mean<T: Field>(x: Columns<T>, out: &mut [T]) {
    columns::mean(x, out);
}

/// The largest element, or NaN if there is one. Equal elements share the gradient evenly.
#[custom_op(
    alias = "amax", shape = (x: [.., n]) -> [..] where n > 0, axis = None, combine = maximum, program = RealRow::max,
)]
pub fn max<T: Real>(x: Columns<T>, out: &mut [T]) {
    columns::max(x, out);
}

/// The smallest element, or NaN if there is one. Equal elements share the gradient evenly.
#[custom_op(
    alias = "amin", shape = (x: [.., n]) -> [..] where n > 0, axis = None, combine = minimum, program = RealRow::min,
)]
pub fn min<T: Real>(x: Columns<T>, out: &mut [T]) {
    columns::min(x, out);
}

/// The index of the first NaN or, without any, of the first largest element. Over several axes: in row-major order.
#[custom_op(shape = (x: [.., n]) -> [..] where n > 0, axis = None, backward = none)]
pub fn argmax<T: Real>(x: Columns<T>, out: &mut [i64]) {
    columns::argmax(x, out);
}

/// The index of the first NaN or, without any, of the first smallest element. Over several axes: in row-major order.
#[custom_op(shape = (x: [.., n]) -> [..] where n > 0, axis = None, backward = none)]
pub fn argmin<T: Real>(x: Columns<T>, out: &mut [i64]) {
    columns::argmin(x, out);
}

/// True if any element is true; a number is true unless it is 0.
#[custom_op(shape = (x: [.., n]) -> [..], axis = None, combine = logical_or, backward = none)]
pub fn any<T: Element>(x: Columns<T>, out: &mut [bool]) {
    columns::any(x, out);
}

/// True if all elements are true; a number is true unless it is 0.
#[custom_op(shape = (x: [.., n]) -> [..], axis = None, combine = logical_and, backward = none)]
pub fn all<T: Element>(x: Columns<T>, out: &mut [bool]) {
    columns::all(x, out);
}

/// The number of nonzero elements.
#[custom_op(shape = (x: [.., n]) -> [..], axis = None, combine = add, backward = none)]
pub fn count_nonzero<T: Element>(x: Columns<T>, out: &mut [i64]) {
    columns::count_nonzero(x, out);
}

/// The cumulative sum along an axis. Integers and booleans are added in 64 bits, as in [`sum()`].
#[custom_op(
    alias = "cumulative_sum", shape = (x: [.., n]) -> [.., n], axis = -1, linear = x,
    backward = |d| { x: flip(cumsum(flip(d, -1)), -1) },
)]
pub fn cumsum<T: Num>(x: Columns<T>, dtype: Option<DType>, out: ColumnsMut<T>) {
    columns::cumsum(x, out);
}

/// The variance: the sum of squared distances from the mean, divided by `n − correction`.
#[custom_op(shape = (x: [.., n]) -> [..] where correction >= 0.0, axis = None, precompiled)]
pub fn var<R: Row>(x: R, #[default = 0.0] correction: f64) -> R {
    x.var(correction)
}

/// The standard deviation, the square root of [`var()`]. The gradient at equal elements is 0.
#[custom_op(shape = (x: [.., n]) -> [..] where correction >= 0.0, axis = None)]
pub fn std<R: Row>(x: R, #[default = 0.0] correction: f64) -> R {
    x.std(correction)
}

/// `ln Σ eˣ`, without overflow.
#[custom_op(shape = (x: [.., n]) -> [..], axis = None, precompiled)]
pub fn logsumexp<R: Row>(x: R) -> R {
    x.logsumexp()
}
