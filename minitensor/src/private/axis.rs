//! [`along_axis`]: runs a body over whole tensors that has an `axis` clause.

use smallvec::SmallVec;

use crate::error::Result;
use crate::op::call::axis_layout::AxisLayout;
use crate::op::{Call, ShapeRule};
use crate::tensor::{Shape, Tensor};

/// Calls a body with the axes that the caller chose last, as one axis, and moves the axes of its results back.
///
/// # Errors
/// If there is no such axis, and those of the body.
pub fn along_axis(call: &Call<'_>, body: impl FnOnce(&Call<'_>) -> Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
    let ShapeRule::Core(rule) = &call.op.shape else { return body(call) };
    let is_along = |i: usize| rule.input(i).batch && !rule.input(i).core.is_empty();
    let Some(first) = (0..call.inputs.len()).filter(|i| is_along(*i)).find_map(|i| call.inputs[i]) else {
        return body(call);
    };
    let Some(axes) = AxisLayout::of(call.op, call.attrs, first.ndim())? else { return body(call) };
    let moved: SmallVec<[Option<Tensor>; 4]> = call
        .inputs
        .iter()
        .enumerate()
        .map(|(i, t)| t.map(|t| if is_along(i) { axes.to_last(t) } else { Ok(t.clone()) }).transpose())
        .collect::<Result<_>>()?;
    let inputs: SmallVec<[Option<&Tensor>; 4]> = moved.iter().map(Option::as_ref).collect();
    let results = body(&Call { inputs: &inputs, ..*call })?;
    let sizes = axes.core(first.shape());
    let restored =
        results.into_iter().zip(rule.outputs.iter()).map(|(t, dims)| match (dims.batch, t.shape().split_last()) {
            (true, _) if dims.core.is_empty() => axes.keep(&t),
            (true, Some((last, batch))) => {
                let is_same = *last == sizes.iter().product::<usize>();
                let shape: Shape =
                    axes.output_shape(batch, Some(if is_same { &sizes } else { std::slice::from_ref(last) }));
                axes.restore(&t, &shape)
            }
            _ => Ok(t),
        });
    restored.collect()
}
