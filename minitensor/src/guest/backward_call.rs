//! [`BackwardCall`] in a plugin: the view that the host passes to a gradient function.

use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Backward, Mode, OpDef, Role};
use crate::plugin::abi;
use crate::tensor::{Device, Tensor};

/// The call of a gradient: cotangents, saved tensors and attributes, all by position. The call of a `jvp` function has tangents instead of
/// cotangents.
pub struct BackwardCall<'a> {
    op: &'a OpDef,
    attrs: Vec<Attr>,
    call: &'a abi::Gradient,
}

impl<'a> BackwardCall<'a> {
    /// # Safety
    /// The host passed the call, which is in progress for `'a`.
    pub unsafe fn new(op: &'a OpDef, call: &'a abi::Gradient) -> Result<BackwardCall<'a>> {
        // SAFETY: by the contract of this function.
        let attrs = unsafe { abi::slice(call.attrs, call.n_attrs as usize, abi::most::LIST, "attrs") }?.iter();
        // SAFETY: by the contract of this function.
        let attrs = attrs.map(|value| unsafe { value.get() }).collect::<Result<_>>()?;
        Ok(BackwardCall { op, attrs, call })
    }

    /// The op whose gradient is computed.
    pub fn op(&self) -> &OpDef {
        self.op
    }

    /// The attributes of the forward call.
    pub fn attrs(&self) -> &[Attr] {
        &self.attrs
    }

    /// The number of flat inputs of the forward call.
    pub fn num_inputs(&self) -> usize {
        self.call.n_inputs as usize
    }

    fn inputs(&self) -> &'a [abi::Meta] {
        // SAFETY: the host provides `n_inputs` items.
        unsafe { std::slice::from_raw_parts(self.call.input_metas, self.call.n_inputs as usize) }
    }

    fn outputs(&self) -> &'a [abi::Meta] {
        // SAFETY: the host provides `n_outputs` items.
        unsafe { std::slice::from_raw_parts(self.call.output_metas, self.call.n_outputs as usize) }
    }

    /// Whether the call is of a `jvp` function, whose list has tangents of the inputs in place of cotangents.
    fn is_forward(&self) -> bool {
        matches!(&self.op.backward, Backward::Formula(formula) if formula.mode == Mode::Forward)
    }

    #[cold]
    fn of_other_mode(&self) -> Error {
        let op = &self.op.name;
        Error::runtime(format!(
            "op '{op}': only a backward function has cotangents, and only a jvp function has tangents"
        ))
    }

    /// An item of a list that has one item for each input or output.
    fn tensor(&self, list: *const *mut abi::Tensor, index: usize, len: usize) -> Result<Option<Tensor>> {
        assert!(index < len, "index {index} is out of range for {len} tensors");
        // SAFETY: the host provides `len` handles, which are valid during the call.
        unsafe { Tensor::from_lent(*list.add(index)) }
    }

    /// Whether the gradient of a flat input is needed.
    pub fn needs(&self, input: usize) -> bool {
        // SAFETY: the host provides one flag for each input.
        input < self.num_inputs() && unsafe { *self.call.needs.add(input) != 0 }
    }

    /// The cotangent of an output. Zeros if that output did not contribute.
    pub fn cotangent(&self, output: usize) -> Result<Tensor> {
        if let Some(tensor) = self.cotangent_if_any(output)? {
            return Ok(tensor);
        }
        let shape: Vec<usize> = sizes(&self.outputs()[output]).iter().map(|d| *d as usize).collect();
        Tensor::zeros(shape, self.output_dtype(output), Device::Cpu)
    }

    fn cotangent_if_any(&self, output: usize) -> Result<Option<Tensor>> {
        if self.is_forward() {
            return Err(self.of_other_mode());
        }
        self.tensor(self.call.cotangents, output, self.outputs().len())
    }

    /// The tangent of a flat input; zero if the input has none. Only `jvp` functions have tangents.
    pub fn tangent(&self, input: usize) -> Result<Tensor> {
        if !self.is_forward() {
            return Err(self.of_other_mode());
        }
        let found = self.tensor(self.call.cotangents, input, self.num_inputs())?;
        found.ok_or_else(|| Error::runtime(format!("op '{}': input {input} has no tangent", self.op.name)))
    }

    /// The value of a flat input in the forward call.
    pub fn input(&self, input: usize) -> Result<Tensor> {
        self.optional_input(input)?.ok_or_else(|| {
            let name = &self.op.inputs[input.min(self.op.inputs.len() - 1)].name;
            Error::runtime(format!("op '{}': '{name}' was not saved for the gradient", self.op.name))
        })
    }

    /// The value of a flat input in the forward call. `None` if it was absent.
    pub fn optional_input(&self, input: usize) -> Result<Option<Tensor>> {
        self.tensor(self.call.inputs, input, self.num_inputs())
    }

    /// The value of an output of the forward call, including saved outputs.
    pub fn output(&self, output: usize) -> Result<Tensor> {
        let found = self.tensor(self.call.outputs, output, self.outputs().len())?;
        found.ok_or_else(|| {
            let name = &self.op.outputs[output.min(self.op.outputs.len() - 1)].name;
            Error::runtime(format!("op '{}': '{name}' was not saved for the gradient", self.op.name))
        })
    }

    /// The shape of a flat input.
    pub fn shape(&self, input: usize) -> Vec<i64> {
        sizes(&self.inputs()[input]).to_vec()
    }

    /// Whether a flat input was given.
    pub fn is_given(&self, input: usize) -> bool {
        self.inputs()[input].ndim >= 0
    }

    /// The dtype of an output.
    pub fn output_dtype(&self, output: usize) -> DType {
        abi::dtype(self.outputs()[output].dtype).unwrap_or(DType::F32)
    }

    /// The dtype of a flat input.
    pub fn dtype(&self, input: usize) -> DType {
        abi::dtype(self.inputs()[input].dtype).unwrap_or(DType::F32)
    }

    /// The size of a dimension of the `shape` clause.
    pub fn dim(&self, name: &str) -> i64 {
        // SAFETY: the host provides `n_dims` names and sizes. The names are valid texts.
        unsafe {
            let names = std::slice::from_raw_parts(self.call.dim_names, self.call.n_dims as usize);
            let at = names.iter().position(|n| n.get(abi::most::NAME).is_ok_and(|n| n == name));
            at.map_or(0, |at| *self.call.dims.add(at))
        }
    }

    /// Positions of the outputs that the op returned to its caller.
    pub fn returned(&self) -> impl Iterator<Item = usize> + '_ {
        self.op.outputs.iter().enumerate().filter(|(_, o)| o.role != Role::Saved).map(|(k, _)| k)
    }
}

fn sizes(meta: &abi::Meta) -> &[i64] {
    &meta.shape[..usize::try_from(meta.ndim).unwrap_or(0)]
}
