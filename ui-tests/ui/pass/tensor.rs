use minitensor::op::{Backward, BackwardFn};
use minitensor::prelude::*;
use minitensor::{BackwardCall, __private as rt};

/// The first of a list.
#[custom_op]
pub fn first(tensors: &[&Tensor], #[default = 0] axis: i64) -> Result<Tensor> {
    let _ = axis;
    tensors.first().map(|t| (*t).clone()).ok_or_else(|| Error::value("an empty list"))
}

/// Both.
#[custom_op(name = "pair::both", dtype = (x: T, y: T) -> (T, bool) where T: Float)]
pub fn both(x: &Tensor, y: Option<&Tensor>) -> (Tensor, Tensor) {
    (x.clone(), y.unwrap_or(x).clone())
}

/// As another dtype.
#[custom_op(dtype = (x: T) -> dtype, backward = |d_out| { x: d_out.astype(x.dtype) })]
pub fn astype(x: &Tensor, dtype: DType) -> Result<Tensor> {
    let _ = dtype;
    Ok(x.clone())
}

/// Its gradient is a function.
#[custom_op(backward = twice_backward)]
pub fn twice(x: &Tensor, #[default = &[1, 2]] sizes: &[i64], #[default = "no"] mode: &str) -> Tensor {
    let _ = (sizes, mode);
    x.clone()
}

fn twice_backward(ctx: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
    Ok(vec![Some(ctx.cotangent(0)?)])
}
const _: BackwardFn = twice_backward;

/// Made of attributes alone.
#[custom_op]
pub fn made(shape: &[i64], #[default = 0.0] value: f64, dtype: Option<DType>) -> Result<Tensor> {
    let _ = (shape, value, dtype);
    Err(Error::value("to come"))
}

/// A list of them.
#[custom_op]
pub fn split(x: &Tensor, parts: usize) -> Result<Vec<Tensor>> {
    Ok(vec![x.clone(); parts])
}

/// A variable may have the name of an op, and values that are no tensors keep their operators and methods.
#[custom_op]
pub fn mixed(x: &Tensor, weight: Option<&Tensor>, #[default = &[1]] mode: &[i64], #[default = 1.5] sum: f64) -> Result<(Tensor, Tensor)> {
    let (mut total, ops) = (sum.sqrt() * 2.0, mode.iter().sum::<i64>() + mode[0]);
    total += f64::from(u8::from(x.shape()[0] == x.shape().len() && x.dtype() == DType::F32));
    let x = &(x * total - ops);
    let scale = |x: f64| x.exp();
    let y = weight.map(|w| Ok(w * x)).transpose()?.unwrap_or_else(|| x.clone());
    let z = match weight {
        Some(w) if w.ndim() == 1 => w.sigmoid()?,
        _ => x * scale(sum),
    };
    let (mut values, indices) = y.topk(2, axis = 0)?;
    values = values[(.., None)].sum(axis = [0, -1], keepdims = true) + ops::linalg::matrix_product(&z, x);
    Ok((values, ops::concat(vec![indices.clone(), indices], 0)))
}

/// A helper of tensors.
#[op_fn]
fn normalized(x: &Tensor, axis: i64) -> Result<Tensor> {
    Ok(x / x.norm(axis = axis, keepdims = true))
}

/// A macro may hold a tensor.
#[custom_op]
pub fn checked(x: &Tensor) -> Result<Vec<Tensor>> {
    assert!(x.ndim() > 0, "{} is a number", x.shape());
    let y: Tensor = normalized(x, -1)?;
    Ok(vec![&y % 2, !x].into_iter().chain([y]).collect())
}

fn main() {
    assert!(matches!(twice::op().backward, Backward::Formula(_)));
    assert!(matches!(first::op().inputs[0].arity, rt::Arity::Variadic));
}
