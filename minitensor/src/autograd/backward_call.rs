//! [`BackwardCall`]: the arguments of a gradient.

use std::sync::Arc;

use smallvec::SmallVec;

use super::node::{Meta, Node};
use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::by_name::names;
use crate::op::call::axis_layout::AxisLayout;
use crate::op::call::shape_rule::Bindings;
use crate::op::gradient::pullback::Pullback;
use crate::op::{OpDef, Role, ShapeRule};
use crate::precision::stored_dtype;
use crate::tensor::{Device, Tensor};

/// The call of a gradient: cotangents, saved tensors and attributes, by position. The call of a `jvp` function has tangents instead of
/// cotangents.
///
/// For an op with an `axis` clause, the tensors have that axis last. The resulting gradients are moved back.
pub struct BackwardCall<'a> {
    node: &'a Arc<Node>,
    cotangents: &'a [Option<Tensor>],
    /// For a `jvp` function, one for each flat input.
    tangents: &'a [Tensor],
    /// For each flat input, whether its gradient is needed; `None` if that of every input with a history is.
    needed: Option<&'a [bool]>,
    /// Whether saved tensors come without their histories.
    detaches: bool,
    axes: Option<AxisLayout>,
    bindings: Bindings<'a>,
}

impl<'a> BackwardCall<'a> {
    pub(crate) fn new(node: &'a Arc<Node>, cotangents: &'a [Option<Tensor>]) -> Result<BackwardCall<'a>> {
        let op: &OpDef = node.op();
        let mut call = BackwardCall {
            node,
            cotangents,
            tangents: &[],
            needed: None,
            detaches: false,
            axes: None,
            bindings: Bindings::default(),
        };
        let ShapeRule::Core(rule) = &op.shape else { return Ok(call) };
        let has_axes = |i: &usize| op.axis.is_some() && rule.input(*i).batch && !rule.input(*i).core.is_empty();
        let rank = (0..node.inputs.len()).filter(has_axes).find_map(|i| node.inputs[i].as_ref()).map(|m| m.shape.len());
        call.axes = rank.map(|rank| AxisLayout::of(op, node.attrs(), rank)).transpose()?.flatten();
        if call.axes.is_none() {
            let shapes = node.inputs.iter().enumerate().filter_map(|(i, meta)| Some((i, &meta.as_ref()?.shape[..])));
            call.bindings.bind_names(rule, shapes);
        }
        for (i, meta) in node.inputs.iter().enumerate() {
            let Some(meta) = meta else { continue };
            let dims = rule.input(i);
            let core: SmallVec<[usize; 4]> = match &call.axes {
                Some(axes) if has_axes(&i) => [axes.core(&meta.shape).iter().product()].into_iter().collect(),
                _ => meta.shape[meta.shape.len() - dims.core.len()..].iter().copied().collect(),
            };
            call.bindings.bind(&dims.core, &core, node.attrs()).map_err(Error::value)?;
        }
        Ok(call)
    }

    /// The same call, of which only these gradients are needed.
    pub(super) fn needing(self, needed: Option<&'a [bool]>) -> BackwardCall<'a> {
        BackwardCall { needed, ..self }
    }

    /// The same call with tangents of its inputs. `detaches` makes the saved tensors constants.
    pub(super) fn with_tangents<'b>(&'b self, tangents: &'b [Tensor], detaches: bool) -> Result<BackwardCall<'b>> {
        Ok(BackwardCall { tangents, detaches, ..BackwardCall::new(self.node, &[])? })
    }

    /// The op that was called.
    pub fn op(&self) -> &OpDef {
        self.node.op()
    }

    /// The attributes of the call.
    pub fn attrs(&self) -> &[Attr] {
        self.node.attrs()
    }

    /// The pullback, if the gradient is derived.
    pub(crate) fn pullback(&self) -> Option<&Pullback> {
        self.node.pullback.as_deref()
    }

    /// The device that computed the call.
    pub(crate) fn device(&self) -> Device {
        self.node.outputs.first().map_or_else(Device::default, |m| m.device)
    }

    /// The number of flat inputs of the call.
    pub fn num_inputs(&self) -> usize {
        self.node.inputs.len()
    }

    /// The number of tensors that were saved besides inputs and outputs.
    pub(crate) fn num_further(&self) -> usize {
        let named = self.node.inputs.len() + self.node.outputs.len();
        self.node.with_saved(|saved| saved.map_or(0, |all| all.len().saturating_sub(named)))
    }

    /// A tensor that was saved besides inputs and outputs.
    pub(crate) fn further(&self, at: usize) -> Result<Tensor> {
        self.unpack(self.node.inputs.len() + self.node.outputs.len() + at, "a tensor")
    }

    /// Whether the gradient of a flat input is needed.
    pub fn needs(&self, input: usize) -> bool {
        match self.needed {
            Some(needed) => needed.get(input).copied().unwrap_or_default(),
            None => self.node.edges.get(input).is_some_and(Option::is_some),
        }
    }

    /// The cotangent of an output; zeros if the output does not contribute to the result.
    pub fn cotangent(&self, output: usize) -> Result<Tensor> {
        if !self.tangents.is_empty() {
            let op = &self.op().name;
            return Err(Error::runtime(format!(
                "op '{op}': output {output} has no cotangent; a jvp function has tangents"
            )));
        }
        match self.cotangents.get(output).and_then(Option::as_ref) {
            Some(t) => self.enter_output(output, t),
            None => {
                let meta = &self.node.outputs[output];
                self.enter_output(output, &Tensor::zeros(meta.shape.clone(), meta.dtype, meta.device)?)
            }
        }
    }

    /// The cotangent of an output, if the output contributes to the result.
    pub fn cotangent_if_any(&self, output: usize) -> Option<&Tensor> {
        self.cotangents.get(output)?.as_ref()
    }

    /// The tangent of a flat input; zero if the input has none. Only `jvp` functions have tangents.
    pub fn tangent(&self, input: usize) -> Result<Tensor> {
        self.tangents.get(input).cloned().ok_or_else(|| {
            let op = &self.op().name;
            Error::runtime(format!("op '{op}': input {input} has no tangent; only a jvp function has tangents"))
        })
    }

    /// The value of a flat input at the call.
    pub fn input(&self, input: usize) -> Result<Tensor> {
        let name = &self.op().parameter(input).name;
        self.optional_input(input)?.ok_or_else(|| self.not_saved(name))
    }

    /// The value of a flat input at the call, if it was given.
    pub fn optional_input(&self, input: usize) -> Result<Option<Tensor>> {
        if self.node.inputs[input].is_none() {
            return Ok(None);
        }
        let name = &self.op().parameter(input).name;
        let tensor = self.computed(self.unpack(input, name)?)?;
        self.enter(self.core_dims(input), tensor).map(Some)
    }

    /// An input in the dtype in which the op has computed, if an attribute has chosen it. Recorded.
    fn computed(&self, tensor: Tensor) -> Result<Tensor> {
        let dtype = self.node.outputs.first().map(|out| out.dtype).filter(|_| self.op().accumulator().is_some());
        match dtype {
            Some(dtype) if dtype != tensor.dtype() => names::ASTYPE.call(&[(&tensor).into(), dtype.into()], &[]),
            _ => Ok(tensor),
        }
    }

    /// The value of an output at the call. The output may be a saved one.
    pub fn output(&self, output: usize) -> Result<Tensor> {
        let tensor = self.unpack(self.node.inputs.len() + output, self.output_name(output))?;
        self.enter_output(output, &tensor)
    }

    fn unpack(&self, slot: usize, name: &str) -> Result<Tensor> {
        self.node.with_saved(|saved| match saved.and_then(|s| s.get(slot)) {
            Some(Some(saved)) if self.detaches => saved.unpack(self.node, name).map(|t| t.detach()),
            Some(Some(saved)) => saved.unpack(self.node, name),
            Some(None) => Err(self.not_saved(name)),
            None => Err(released(&self.op().name)),
        })
    }

    #[cold]
    fn not_saved(&self, name: &str) -> Error {
        Error::runtime(format!("op '{}': '{name}' was not saved for the gradient", self.op().name))
    }

    /// The shape of a flat input.
    pub fn shape(&self, input: usize) -> Vec<i64> {
        let Some(meta) = &self.node.inputs[input] else { return Vec::new() };
        let sizes = |s: &[usize]| s.iter().map(|d| *d as i64).collect::<Vec<_>>();
        match (&self.axes, self.core_dims(input)) {
            (Some(axes), Some(1..)) => {
                let core: usize = axes.core(&meta.shape).iter().product();
                let mut batch = axes.batch(&meta.shape);
                batch.push(core);
                sizes(&batch)
            }
            _ => sizes(&meta.shape),
        }
    }

    /// Whether a flat input was given.
    pub fn is_given(&self, input: usize) -> bool {
        self.node.inputs[input].is_some()
    }

    /// The shape of an output, as [`BackwardCall::cotangent`] returns its cotangent.
    pub fn output_shape(&self, output: usize) -> Result<Vec<i64>> {
        let meta = &self.node.outputs[output];
        let like = Tensor::empty(meta.shape.clone(), meta.dtype, Device::Meta)?;
        Ok(self.enter_output(output, &like)?.shape().iter().map(|d| *d as i64).collect())
    }

    /// The core dimensions of an output, as the body sees them.
    pub(crate) fn output_core(&self, output: usize) -> Result<SmallVec<[usize; 4]>> {
        let ShapeRule::Core(rule) = &self.op().shape else { return Ok(SmallVec::new()) };
        self.bindings.sizes(&rule.output(output).core, self.attrs()).map_err(Error::value)
    }

    /// The name of an output. An op that returns a list declares one for all.
    pub(crate) fn output_name(&self, output: usize) -> &str {
        let outputs = &self.op().outputs;
        &outputs[output.min(outputs.len() - 1)].name
    }

    /// The number of outputs of the call.
    pub(crate) fn num_outputs(&self) -> usize {
        self.node.outputs.len()
    }

    /// The dtype of an output.
    pub fn output_dtype(&self, output: usize) -> DType {
        self.node.outputs[output].dtype
    }

    /// The dtype of a flat input.
    pub fn dtype(&self, input: usize) -> DType {
        self.node.inputs[input].as_ref().map_or(DType::F32, |m| m.dtype)
    }

    /// The size of a dimension of the `shape` clause.
    pub fn dim(&self, name: &str) -> i64 {
        self.bindings.get(name).unwrap_or(0)
    }

    /// The named dimensions of the `shape` clause, with their sizes.
    pub fn dims(&self) -> impl Iterator<Item = (&'a str, i64)> + '_ {
        self.bindings.iter()
    }

    /// The number of core dimensions of an input that has batch dimensions; `None` if it has none.
    fn core_dims(&self, input: usize) -> Option<usize> {
        match &self.op().shape {
            ShapeRule::Core(rule) => Some(rule.input(input)).filter(|d| d.batch).map(|d| d.core.len()),
            _ => None,
        }
    }

    fn enter(&self, core: Option<usize>, tensor: Tensor) -> Result<Tensor> {
        match (&self.axes, core) {
            (Some(axes), Some(1..)) => axes.to_last(&tensor),
            _ => Ok(tensor),
        }
    }

    fn enter_output(&self, output: usize, tensor: &Tensor) -> Result<Tensor> {
        let ShapeRule::Core(rule) = &self.op().shape else { return Ok(tensor.clone()) };
        let dims = rule.output(output);
        match &self.axes {
            Some(axes) if dims.batch && dims.core.is_empty() => axes.drop_kept(tensor),
            Some(axes) if dims.batch => axes.to_last(tensor),
            _ => Ok(tensor.clone()),
        }
    }

    /// Converts a gradient from the backward body to the shape and dtype of its input.
    pub(crate) fn leave(&self, input: usize, grad: Tensor) -> Result<Tensor> {
        let Some(meta) = &self.node.inputs[input] else { return Ok(grad) };
        let (Some(axes), Some(1..)) = (&self.axes, self.core_dims(input)) else {
            return fit(grad, meta, &self.op().name);
        };
        let sizes: Vec<usize> = self.shape(input).iter().map(|s| *s as usize).collect();
        let inside = Meta { shape: sizes.into(), dtype: meta.dtype, device: meta.device };
        axes.restore(&fit(grad, &inside, &self.op().name)?, &meta.shape)
    }

    /// The positions of the outputs that the op returned to its caller.
    pub fn returned(&self) -> impl Iterator<Item = usize> + '_ {
        self.op().outputs.iter().enumerate().filter(|(_, o)| o.role != Role::Saved).map(|(k, _)| k)
    }
}

#[cold]
pub(crate) fn released(op: &str) -> Error {
    Error::runtime(format!(
        "op '{op}': its graph was released by an earlier backward(); pass retain_graph=True to that call to run \
         backward() again"
    ))
}

/// Converts a gradient to the shape and dtype of its input. It is summed where the input was broadcast, and expanded where
/// the input was reduced. The sum is computed in the wider of the two dtypes. The gradient of a half-float input stays in
/// `float32` while loops keep that dtype, so that the pass can add further terms before it rounds.
pub(crate) fn fit(grad: Tensor, meta: &Meta, op: &str) -> Result<Tensor> {
    use crate::op::by_name::names::{ASTYPE, REAL};
    let mut grad = grad;
    if grad.dtype().is_complex() && !meta.dtype.is_complex() {
        grad = REAL.call(&[(&grad).into()], &[])?;
    }
    let converted = |grad: Tensor| match [meta.dtype, stored_dtype(meta.dtype)].contains(&grad.dtype()) {
        true => Ok(grad),
        false => ASTYPE.call(&[(&grad).into(), meta.dtype.into()], &[]),
    };
    if grad.dtype().promote(meta.dtype) == grad.dtype() {
        return converted(fit_shape(grad, meta, op)?);
    }
    fit_shape(converted(grad)?, meta, op)
}

/// Converts a gradient to the shape of its input.
fn fit_shape(grad: Tensor, meta: &Meta, op: &str) -> Result<Tensor> {
    use crate::op::by_name::names::SUM;
    use crate::op::by_name::reshape;
    if grad.shape() == &meta.shape {
        return Ok(grad);
    }
    if grad.shape().broadcast(&meta.shape).as_ref() == Some(&meta.shape) {
        return reshape::expand(&grad, &meta.shape);
    }
    let extra = grad.ndim().saturating_sub(meta.shape.len());
    let stretched = |d: &usize| *d < extra || (meta.shape[d - extra] == 1 && grad.shape()[*d] != 1);
    let fits = grad.ndim() >= meta.shape.len()
        && (extra..grad.ndim()).all(|d| stretched(&d) || grad.shape()[d] == meta.shape[d - extra]);
    if !fits {
        return Err(Error::runtime(format!(
            "op '{op}': its backward returned a gradient of shape {} for an input of shape {}; correct the backward",
            grad.shape(),
            meta.shape
        )));
    }
    let axes: Vec<i64> = (0..grad.ndim()).filter(stretched).map(|d| d as i64).collect();
    let summed = SUM.call(&[(&grad).into(), axes.into(), true.into()], &[])?;
    let sizes = || meta.shape.iter().map(|s| *s as i64).collect();
    if extra == 0 { Ok(summed) } else { reshape::reshape(&summed, sizes()) }
}
