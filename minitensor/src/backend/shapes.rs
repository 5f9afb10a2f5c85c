//! The shapes of one call: of an element op by broadcasting, of a cell op by its `shape` clause.

use smallvec::SmallVec;

use crate::attr::Attr;
use crate::error::{Error, Result, counted};
use crate::op::call::axis_layout::AxisLayout;
use crate::op::call::shape_rule::{Bindings, CoreShapes};
use crate::op::{OpDef, Role};
use crate::tensor::{Shape, Tensor};

/// The shape that all inputs broadcast to.
pub fn broadcast(op: &OpDef, inputs: &[Option<&Tensor>]) -> Result<Shape> {
    let mut shape: Option<Shape> = None;
    for (i, t) in inputs.iter().enumerate().filter_map(|(i, t)| t.map(|t| (i, t))) {
        match &shape {
            None => shape = Some(t.shape().clone()),
            Some(s) if s == t.shape() => {}
            Some(s) => {
                shape = Some(s.broadcast(t.shape()).ok_or_else(|| {
                    Error::value(format!(
                        "op '{}': '{}' of shape {} does not broadcast with the shape {s} of the inputs before it; \
                         sizes are aligned at the last axis and must be equal or 1",
                        op.name,
                        op.parameter(i).name,
                        t.shape()
                    ))
                })?)
            }
        }
    }
    let shape = shape.unwrap_or_default();
    (0..inputs.len()).filter(|i| op.parameter(*i).mutated).try_for_each(|i| check_change(op, inputs, i, &shape))?;
    Ok(shape)
}

/// An input that is changed in place must have the shape of the result.
fn check_change(op: &OpDef, inputs: &[Option<&Tensor>], input: usize, shape: &Shape) -> Result<()> {
    match inputs.get(input).copied().flatten().filter(|t| t.shape() != shape) {
        None => Ok(()),
        Some(t) => Err(Error::value(format!(
            "op '{}' changes '{}' in place, but its shape {} differs from the shape {shape} of the result",
            op.name,
            op.parameter(input).name,
            t.shape()
        ))),
    }
}

/// The result of the `shape` clause for one call.
pub struct CallShapes {
    /// The chosen axes, if the op has an `axis` clause.
    pub axes: Option<AxisLayout>,
    /// The broadcast batch dimensions.
    pub batch: Shape,
    /// The shape of every output.
    pub outputs: SmallVec<[Shape; 2]>,
}

impl CallShapes {
    /// Matches the inputs against the clause.
    pub fn new(op: &OpDef, rule: &CoreShapes, inputs: &[Option<&Tensor>], attrs: &[Attr]) -> Result<CallShapes> {
        let fail = |i: usize, t: &Tensor, why: String| {
            Error::value(format!(
                "op '{}' takes {}: '{}' of shape {} does not match: {why}",
                op.name,
                rule.text,
                op.parameter(i).name,
                t.shape()
            ))
        };
        let has_axes = |i: usize| op.axis.is_some() && rule.input(i).batch && !rule.input(i).core.is_empty();
        let along = (0..inputs.len()).filter(|i| has_axes(*i)).find_map(|i| inputs[i]);
        let rank = along.map(Tensor::ndim);
        let mut axes = rank.map(|rank| AxisLayout::of(op, attrs, rank)).transpose()?.flatten();
        let mut bindings = Bindings::default();
        if axes.is_none() {
            let shapes = inputs.iter().enumerate().filter_map(|(i, t)| Some((i, &t.as_ref()?.shape()[..])));
            bindings.bind_names(rule, shapes);
        }
        let mut batch = Shape::default();
        let mut frame_core = SmallVec::<[usize; 4]>::new();
        for (i, t) in inputs.iter().enumerate().filter_map(|(i, t)| t.map(|t| (i, t))) {
            let dims = rule.input(i);
            let (own, core): (Shape, SmallVec<[usize; 4]>) = match &axes {
                Some(axes) if has_axes(i) => {
                    if Some(t.ndim()) != rank {
                        return Err(fail(
                            i,
                            t,
                            "inputs that share the axis must have the same number of dimensions".into(),
                        ));
                    }
                    frame_core = axes.core(t.shape());
                    (axes.batch(t.shape()), [frame_core.iter().product()].into_iter().collect())
                }
                _ => {
                    let needed = |how: &str| format!("expected {how} {}", counted(dims.core.len(), "dimension"));
                    let Some(split) = t.ndim().checked_sub(dims.core.len()) else {
                        return Err(fail(i, t, needed("at least")));
                    };
                    if split > 0 && !dims.batch {
                        return Err(fail(i, t, needed("exactly")));
                    }
                    // The batch dimensions of the results are those of the inputs along the axis.
                    if let (Some(axes), Some(rank)) = (&axes, rank)
                        && split > rank - axes.width()
                    {
                        let most = counted(rank - axes.width(), "batch dimension");
                        return Err(fail(i, t, format!("the inputs along the axis have only {most}")));
                    }
                    (t.shape()[..split].into(), t.shape()[split..].iter().copied().collect())
                }
            };
            bindings.bind(&dims.core, &core, attrs).map_err(|why| fail(i, t, why))?;
            batch = batch.broadcast(&own).ok_or_else(|| {
                fail(
                    i,
                    t,
                    format!(
                        "its batch dimensions {own} do not broadcast with the batch dimensions {batch} of the inputs \
                         before it"
                    ),
                )
            })?;
        }
        op.check_predicates(&bindings, attrs)?;
        let mut outputs = SmallVec::new();
        for (o, dims) in op.outputs.iter().zip(rule.outputs.iter()) {
            let core = bindings.sizes(&dims.core, attrs).map_err(|why| {
                Error::value(format!("op '{}' takes {}: {why} (output '{}')", op.name, rule.text, o.name))
            })?;
            outputs.push(match (&axes, dims.batch) {
                (Some(axes), true) => {
                    let unchanged = core.as_slice() == [frame_core.iter().product::<usize>()];
                    let whole = if unchanged { &frame_core } else { &core };
                    if !core.is_empty() && whole.len() != axes.width() {
                        return Err(Error::value(format!(
                            "op '{}' changes the size of its axis, so it takes only one axis",
                            op.name
                        )));
                    }
                    axes.output_shape(&batch, (!core.is_empty()).then_some(whole))
                }
                (_, true) => batch.iter().copied().chain(core).collect(),
                (_, false) => core.into_iter().collect(),
            });
        }
        for (output, shape) in op.outputs.iter().zip(&outputs) {
            if let Role::Mutates(i) = output.role {
                check_change(op, inputs, i.into(), shape)?;
            }
        }
        // An input without the chosen axes has its elements in the order of the axes as they are.
        let moves = |i: usize, axes: &AxisLayout| match inputs[i] {
            Some(t) if has_axes(i) => axes.core(t.shape()) == frame_core,
            Some(_) => rule.input(i).core.is_empty(),
            None => true,
        };
        if let (Some(axes), Some(x)) = (&mut axes, along)
            && !axes.are_in_order_of_memory(x)
            && (0..inputs.len()).all(|i| moves(i, axes))
            && op.ignores_order(attrs, |i| inputs[i].is_some())
        {
            axes.put_in_order_of_memory(x);
        }
        Ok(CallShapes { axes, batch, outputs })
    }

    /// An input in the form that kernels take: its core axes are last, as one axis if the caller chose several, after all batch
    /// axes of the call. `None` as it is.
    pub fn kernel_input(&self, rule: &CoreShapes, input: usize, t: &Tensor) -> Result<Tensor> {
        let dims = rule.input(input);
        if !dims.batch {
            return Ok(t.clone());
        }
        let t = match &self.axes {
            Some(axes) if !dims.core.is_empty() => axes.to_last(t)?,
            _ => t.clone(),
        };
        let core = &t.shape()[t.ndim() - dims.core.len()..];
        Ok(expanded(t.clone(), &self.batch.iter().copied().chain(core.iter().copied()).collect()))
    }

    /// The shape of an output in the form that kernels write.
    pub fn kernel_shape(&self, rule: &CoreShapes, output: usize) -> Shape {
        let (dims, shape) = (&rule.outputs[output], &self.outputs[output]);
        match &self.axes {
            Some(axes) if dims.batch && !dims.core.is_empty() => {
                self.batch.iter().copied().chain([axes.core(shape).iter().product()]).collect()
            }
            Some(_) if dims.batch => self.batch.clone(),
            _ => shape.clone(),
        }
    }

    /// An output in the caller's order of axes, from the form that kernels write.
    pub fn call_output(&self, rule: &CoreShapes, output: usize, t: &Tensor) -> Result<Tensor> {
        let (dims, shape) = (&rule.outputs[output], &self.outputs[output]);
        let t = expanded(t.clone(), &self.kernel_shape(rule, output));
        match &self.axes {
            Some(axes) if dims.batch && !dims.core.is_empty() => axes.restore(&t, shape),
            _ => t.reshape_view(&shape.iter().map(|n| *n as i64).collect::<Vec<_>>()),
        }
    }
}

/// The tensor expanded to a shape that it broadcasts to.
pub fn expanded(t: Tensor, shape: &Shape) -> Tensor {
    if t.shape() == shape { t } else { t.broadcast_view(shape) }
}
