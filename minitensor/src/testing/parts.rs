//! Whether the results for parts of a row combine as the clause `combine` states.

use super::sample::Sample;
use super::values::close;
use crate::attr::Attr;
use crate::dispatch::parts::pair;
use crate::error::{Error, Result};
use crate::op::OpRef;
use crate::tensor::Tensor;

/// The results for the two halves of a row, combined, must be the result for the row.
pub fn parts_combine(op: &OpRef, sample: &Sample) -> Result<()> {
    let (Some(combine), Some(axis), Some(Some(x))) = (op.combine, op.axis, sample.inputs.first()) else {
        return Ok(());
    };
    let n = x.shape().last().copied().unwrap_or(0);
    if n < 2 {
        return Ok(());
    }
    let last = x.ndim() as i64 - 1;
    let result = |x: Tensor| -> Result<Tensor> {
        let mut part = Sample { inputs: vec![Some(x)], attrs: sample.attrs.clone() };
        part.attrs[axis.attr as usize] = if axis.many { Attr::Ints(vec![last].into()) } else { Attr::Int(last) };
        part.call(op)?.into_iter().next().ok_or_else(|| Error::runtime("the op has no result"))
    };
    let middle = n / 2;
    let parts = [x.slice_view(last, 0, middle, 1)?, x.slice_view(last, middle, n - middle, 1)?];
    let [first, second] = parts.map(result);
    let (whole, both) = (result(x.clone())?, pair(combine, (&first?, middle), (&second?, n - middle))?);
    match close(&whole.detach(), &both.cast(whole.dtype())?, 1e-9)? {
        true => Ok(()),
        false => Err(Error::runtime(format!(
            "the clause `combine = {}` does not hold: the results for two halves of a row combine to {both}, but that for \
             the row is {whole}",
            combine.word()
        ))),
    }
}
