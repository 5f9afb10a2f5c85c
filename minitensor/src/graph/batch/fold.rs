//! Rules that fold the examples into another axis, such as that of rows: all examples together have more of them.

use smallvec::SmallVec;

use super::rule::{Given, Together, repeated, reshaped};
use crate::attr::Attr;
use crate::error::Result;
use crate::graph::Call;
use crate::op::OpName;
use crate::op::by_name::names;
use crate::tensor::Tensor;

static MOVEAXIS: OpName = OpName::new("moveaxis");
static WRAP: OpName = OpName::new("indexing::wrap");

/// Ops whose results have a row for each row of some arguments, and these arguments.
const ROWS: &[(&str, &[bool])] = &[
    ("convolution::forward", &[true, false, false]),
    ("convolution::input", &[true, false]),
    ("indexing::take_rows", &[false, true]),
    ("indexing::wrap", &[true]),
    ("linalg::matrix_product", &[true, false]),
];

/// The call with the rows of all examples together.
pub fn rows(call: &Call, given: &[Given], result: &Tensor, size: usize) -> Result<Option<Together>> {
    let is_batched = |(arg, batched): (&Given, &bool)| arg.is_batched() == *batched;
    let fits = |(name, batched): &&(&str, &[bool])| {
        *name == call.op.name && batched.len() == given.len() && given.iter().zip(*batched).all(is_batched)
    };
    // A product of two tables. Others have batches of their own.
    let is_table = |arg: &Given| call.op.name != "linalg::matrix_product" || arg.rank() == Some(2);
    if !ROWS.iter().any(|row| fits(&row)) || !given.iter().all(is_table) || size == 0 {
        return Ok(None);
    }
    let args = given.iter().map(|arg| match arg {
        Given::Tensor(t, true) => Ok(Given::Tensor(merged(t)?, true)),
        other => Ok(other.clone()),
    });
    Ok(Some(Together {
        args: args.collect::<Result<_>>()?,
        attrs: call.attrs.clone(),
        result: Some((result.shape().clone(), 0)),
    }))
}

/// The call that selects rows of, or adds to rows of, the tables of all examples together.
pub fn tables(call: &Call, given: &[Given], result: &Tensor, size: usize) -> Result<Option<Together>> {
    let is_sum = call.op.name == "scatter_rows";
    if size == 0 || !is_sum && !["embedding", "indexing::take_rows"].contains(&call.op.name.as_ref()) {
        return Ok(None);
    }
    let [Given::Tensor(x, has_tables), Given::Tensor(index, _)] = given else { return Ok(None) };
    if !is_sum && !has_tables {
        return Ok(None);
    }
    let of_all = |arg: &Given, t: &Tensor| if arg.is_batched() { Ok(t.clone()) } else { repeated(t, size) };
    let (x, index) = (of_all(&given[0], x)?, of_all(&given[1], index)?);
    let mut attrs = call.attrs.clone();
    let height = match (&mut attrs[..], is_sum) {
        ([Attr::Int(height), ..], true) => std::mem::replace(height, *height * size as i64),
        (_, false) => x.shape()[1] as i64,
        _ => return Ok(None),
    };
    // The number of the row among those of all tables.
    let flat = reshaped(&index, [index.numel()].into_iter())?;
    let flat = WRAP.call(&[(&flat).into(), height.into(), 0i64.into()], &[])?;
    let ones = std::iter::repeat_n(1, index.ndim() - 1);
    let first = Tensor::from_vec((0..size as i64).map(|k| k * height).collect(), [size])?;
    let first = reshaped(&first.to_device(index.device())?, [size].into_iter().chain(ones))?;
    let index = names::ADD.call(&[(&reshaped(&flat, index.shape().iter().copied())?).into(), (&first).into()], &[])?;
    let is_list = call.op.name != "embedding";
    let args: SmallVec<[Given; 4]> =
        [Given::Tensor(merged(&x)?, true), Given::Tensor(if is_list { merged(&index)? } else { index }, true)]
            .into_iter()
            .collect();
    Ok(Some(Together { args, attrs, result: is_list.then(|| (result.shape().clone(), 0)) }))
}

/// Convolutions in groups of channels: for each argument, the axis of its channels, and that of the result.
const GROUPS: &[(&str, [usize; 3], usize)] = &[
    ("convolution::forward", [1, 0, 0], 1),
    ("convolution::input", [1, 0, 0], 1),
    ("convolution::weight", [1, 1, 0], 0),
];

/// The convolution in which each example has groups of its own.
pub fn groups(call: &Call, given: &[Given], result: &Tensor, size: usize) -> Result<Option<Together>> {
    let Some((_, axes, to)) = GROUPS.iter().find(|(name, ..)| *name == call.op.name) else { return Ok(None) };
    let mut attrs = call.attrs.clone();
    let (Some(Attr::Int(groups)), 1..) = (attrs.last_mut(), size) else { return Ok(None) };
    *groups *= size as i64;
    let args = given.iter().zip(axes).map(|(arg, axis)| match arg {
        Given::Tensor(t, is_batched) => {
            let t = if *is_batched { t.clone() } else { repeated(t, size)? };
            let mut sizes: SmallVec<[usize; 4]> = t.shape()[1..].iter().copied().collect();
            sizes[*axis] *= size;
            let moved = MOVEAXIS.call(&[(&t).into(), 0i64.into(), (*axis as i64).into()], &[])?;
            Ok(Given::Tensor(reshaped(&moved, sizes.into_iter())?, true))
        }
        other => Ok(other.clone()),
    });
    Ok(Some(Together { args: args.collect::<Result<_>>()?, attrs, result: Some((result.shape().clone(), *to)) }))
}

/// The first two axes as one.
fn merged(t: &Tensor) -> Result<Tensor> {
    reshaped(
        t,
        std::iter::once(t.shape()[0] * t.shape().get(1).copied().unwrap_or(1)).chain(t.shape()[2..].iter().copied()),
    )
}
