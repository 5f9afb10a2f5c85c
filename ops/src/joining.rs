//! Joins and pads tensors.

use minitensor::BackwardCall;
use minitensor::prelude::*;
use minitensor::tensor::normalize_axis;

use crate::indexing::slice;
use crate::shape::unsqueeze;

/// Joins tensors along an axis.
#[custom_op(alias = "cat", backward = self::concat_backward)]
pub fn concat(tensors: &[&Tensor], #[default = 0] axis: i64) -> Result<Tensor> {
    let Some(first) = tensors.first() else {
        return Err(Error::value("takes at least one tensor"));
    };
    let at = normalize_axis(axis, first.ndim())?;
    let dtype = tensors.iter().fold(first.dtype(), |d, t| d.promote(t.dtype()));
    let mut shape = first.shape().clone();
    shape.dims_mut()[at] = 0;
    for (i, t) in tensors.iter().enumerate() {
        let fits = t.ndim() == first.ndim() && (0..t.ndim()).all(|d| d == at || t.shape()[d] == first.shape()[d]);
        if !fits {
            return Err(Error::value(format!(
                "tensors[{i}] of shape {} does not match {} along axis {axis}: all other sizes must be equal",
                t.shape(),
                first.shape()
            )));
        }
        shape.dims_mut()[at] += t.shape()[at];
    }
    let out = Tensor::empty(shape, dtype, first.device())?;
    let mut start = 0;
    for t in tensors {
        let size = t.shape()[at];
        out.slice_view(at as i64, start, size, 1)?.copy_from(t)?;
        start += size;
    }
    Ok(out)
}

/// The gradient of each input is its slice of the cotangent.
fn concat_backward(call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
    let d = call.cotangent(0)?;
    let axis: i64 = minitensor::attr::FromAttr::from_attr(&call.attrs()[0])?;
    let at = normalize_axis(axis, d.ndim())?;
    let mut start = 0;
    (0..call.num_inputs())
        .map(|i| {
            let stop = start + call.shape(i)[at];
            let part = call.needs(i).then(|| slice::call(&d, at as i64, Some(start), Some(stop), 1)).transpose();
            start = stop;
            part
        })
        .collect()
}

/// Joins tensors of the same shape along a new axis.
#[custom_op]
pub fn stack(tensors: &[&Tensor], #[default = 0] axis: i64) -> Result<Tensor> {
    if tensors.is_empty() {
        return Err(Error::value("op 'stack' takes at least one tensor"));
    }
    let rows = tensors.iter().map(|t| unsqueeze::call(t, axis)).collect::<Result<Vec<_>>>()?;
    concat::call(&rows.iter().collect::<Vec<_>>(), axis)
}

/// The margins before and after each axis: two sizes for each of the last axes, the outermost first.
fn margins(rank: usize, padding: &[i64]) -> Result<Vec<(usize, usize)>> {
    if !padding.len().is_multiple_of(2) || padding.len() / 2 > rank || padding.iter().any(|p| *p < 0) {
        return Err(Error::value(format!(
            "'padding' must be two sizes of at least 0 (before, after) for each of the last axes, got {padding:?}; the \
             tensor has {rank}"
        )));
    }
    let mut margins = vec![(0, 0); rank - padding.len() / 2];
    margins.extend(padding.chunks_exact(2).map(|p| (p[0] as usize, p[1] as usize)));
    Ok(margins)
}

/// An error that names the argument if its value is not a number of the dtype of `x`.
pub(crate) fn expect_number(dtype: DType, argument: &str, value: f64) -> Result<()> {
    if dtype.holds(value) {
        return Ok(());
    }
    Err(Error::value(format!(
        "'{argument}' = {value} is not a number of dtype {dtype}; give a whole number in its range, or convert x with astype"
    )))
}

/// Pads with a value: `padding` has two sizes, before and after, for each of the last axes, the outermost first.
#[custom_op(backward = |d| { x: crop(d, padding) })]
pub fn pad(x: &Tensor, padding: &[i64], #[default = 0.0] value: f64) -> Result<Tensor> {
    let margins = margins(x.ndim(), padding)?;
    expect_number(x.dtype(), "value", value)?;
    let shape: Shape = x.shape().iter().zip(&margins).map(|(n, (a, b))| n + a + b).collect();
    let out = Tensor::full(shape, minitensor::kernels::Const::Float(value), x.dtype(), x.device())?;
    let mut window = out.detach();
    for (axis, (before, _)) in margins.iter().enumerate() {
        window = window.slice_view(axis as i64, *before, x.shape()[axis], 1)?;
    }
    window.copy_from(x)?;
    Ok(out)
}

/// Removes margins, which are given as for [`pad()`].
#[custom_op]
pub fn crop(x: &Tensor, padding: &[i64]) -> Result<Tensor> {
    let margins = margins(x.ndim(), padding)?;
    margins.iter().enumerate().try_fold(x.clone(), |x, (axis, (before, behind))| {
        let stop = x.shape()[axis].saturating_sub(*behind) as i64;
        slice::call(&x, axis as i64, Some(*before as i64), Some(stop), 1)
    })
}
