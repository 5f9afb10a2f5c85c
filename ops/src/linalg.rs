//! Matrix products.

use minitensor::prelude::*;

use crate::shape::{reshape, squeeze, unsqueeze};

/// The product of matrices; [`matmul()`] also takes vectors.
#[custom_op(
    name = "linalg::matrix_product", shape = (x: [.., m, k], y: [.., k, n]) -> [.., m, n], linear = [x, y],
    backward = |d| {
        x: linalg::matrix_product(d, y.matrix_transpose().conj()),
        y: linalg::matrix_product(x.matrix_transpose().conj(), d),
    },
)]
pub fn matrix_product<T: Num>(x: ArrayView2<T>, y: ArrayView2<T>, out: ArrayViewMut2<T>) {
    minitensor::kernels::matmul(x, y, out);
}

/// The matrix product `x @ y` over the last two axes; the axes before them broadcast. A vector is treated as a row on
/// the left and as a column on the right.
#[custom_op(linear = [x, y])]
pub fn matmul(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    if x.ndim() == 0 || y.ndim() == 0 {
        return Err(Error::value(format!(
            "op 'matmul' takes tensors of at least 1 dimension, got shapes {} and {}; use multiply for numbers",
            x.shape(),
            y.shape()
        )));
    }
    let row = (x.ndim() == 1).then(|| unsqueeze::call(x, 0)).transpose()?;
    let column = (y.ndim() == 1).then(|| unsqueeze::call(y, 1)).transpose()?;
    let mut out = product(row.as_ref().unwrap_or(x), column.as_ref().unwrap_or(y))?;
    if column.is_some() {
        out = squeeze::call(&out, Some(&[-1]))?;
    }
    if row.is_some() {
        out = squeeze::call(&out, Some(&[if column.is_some() { -1 } else { -2 }]))?;
    }
    Ok(out)
}

/// `x @ y` with at least two axes each. If a whole batch is multiplied by one matrix of several columns, this is a single
/// product of all its rows, and so is the gradient of the matrix, instead of a sum over the batch.
fn product(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (k, n) = (y.shape()[0], y.shape()[y.ndim() - 1]);
    let is_one_matrix = x.ndim() > 2 && y.ndim() == 2 && n > 1;
    let Some((_, batch)) = x.shape().split_last().filter(|(width, _)| is_one_matrix && **width == k) else {
        return matrix_product::call(x, y);
    };
    let mut shape: Vec<i64> = batch.iter().map(|n| *n as i64).collect();
    let rows = reshape::call(x, &[shape.iter().product(), k as i64])?;
    shape.push(n as i64);
    reshape::call(&matrix_product::call(&rows, y)?, &shape)
}
