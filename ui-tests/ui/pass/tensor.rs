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

fn main() {
    assert!(matches!(twice::op().backward, Backward::Formula(_)));
    assert!(matches!(first::op().inputs[0].arity, rt::Arity::Variadic));
}
