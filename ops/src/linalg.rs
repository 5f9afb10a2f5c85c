//! Matrix products.

use minitensor::prelude::*;

use crate::shape::{matrix_transpose, reshape, squeeze, unsqueeze};

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
    with_vectors(x, y, product)
}

/// A product of matrices, in which a vector is a row on the left and a column on the right.
fn with_vectors(x: &Tensor, y: &Tensor, product: fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<Tensor> {
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

/// `x @ weight.T + bias` over the last axis of `x`, as in a layer of a neural network. The gradient of `weight` is computed in
/// the order of its elements, so it needs no transposition.
#[custom_op(
    shape = (x: [.., k], weight: [n, k], bias: [n]) -> [.., n],
    backward = |d| {
        x: matmul(d, weight.conj()),
        weight: linalg::matrix_product(d.reshape(self::rows(x.shape, n)).matrix_transpose(), x.reshape(self::rows(x.shape, k)).conj()),
        bias: d,
    },
)]
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let out = with_vectors(x, &weight.matrix_transpose(), product_of_rows)?;
    match bias {
        Some(bias) => Ok(out + bias),
        None => Ok(out),
    }
}

/// The shape of a matrix with all rows of a tensor: their number, and this width.
fn rows(shape: Vec<i64>, width: i64) -> Vec<i64> {
    vec![shape[..shape.len() - 1].iter().product(), width]
}

/// `x @ y` with at least two axes each. If `y` is a transposed matrix, the gradient is computed in the order of that matrix.
fn product(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let is_transposed =
        y.ndim() == 2 && y.strides()[0] == 1 && y.strides()[1] > 1 && x.shape().last() == y.shape().first();
    if is_transposed { linear::call(x, &matrix_transpose::call(y)?, None) } else { product_of_rows(x, y) }
}

/// `x @ y` with at least two axes each. If a whole batch is multiplied by one matrix of several columns, this is a single product of
/// all its rows, and so is the gradient of the matrix, instead of a sum over the batch.
fn product_of_rows(x: &Tensor, y: &Tensor) -> Result<Tensor> {
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
