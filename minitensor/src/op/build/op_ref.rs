//! [`CustomOp`] implemented by a definition. The gradient runs the op again.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Result;
use crate::op::call::Arg;
use crate::op::def::{Backward, OpRef};
use crate::op::{CustomOp, GradientFunction};
use crate::op::{dispatch_one, infer, vjp};
use crate::tensor::{Device, Shape, Tensor};

impl CustomOp for OpRef {
    fn name(&self) -> &str {
        &self.name
    }

    fn validate_inputs(&self, inputs: &[&Tensor]) -> Result<()> {
        self.infer_defaults(inputs).map(|_| ())
    }

    fn forward(&self, inputs: &[&Tensor]) -> Result<Tensor> {
        let args: Vec<Arg<'_>> = inputs.iter().map(|t| Arg::Tensor(t)).collect();
        dispatch_one(self, &args, &self.default_attrs()?)
    }

    fn create_gradient_function(&self, inputs: &[&Tensor], _output: &Tensor) -> Option<Arc<dyn GradientFunction>> {
        if matches!(self.backward, Backward::None(_) | Backward::NotNeeded) {
            return None;
        }
        let inputs = inputs.iter().map(|t| (*t).clone()).collect();
        Some(Arc::new(Replay { op: self.clone(), inputs }))
    }

    fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    fn output_shape(&self, input_shapes: &[&Shape]) -> Result<Shape> {
        let inputs = metas(input_shapes.iter().map(|s| ((*s).clone(), DType::F32)))?;
        Ok(self.infer_defaults(&inputs.iter().collect::<Vec<_>>())?.shape().clone())
    }

    fn output_dtype(&self, input_dtypes: &[DType]) -> Result<DType> {
        let args = metas(input_dtypes.iter().map(|d| (Shape::default(), *d)))?;
        let args: Vec<Arg<'_>> = args.iter().map(Arg::Tensor).collect();
        let dtypes = self.resolve_dtypes(&args, &[])?;
        self.output_dtype_of(self.outputs[0].dtype, &dtypes, &self.default_attrs()?)
    }

    fn output_device(&self, input_devices: &[&Device]) -> Result<Device> {
        Ok(input_devices.first().map_or(Device::Cpu, |d| **d))
    }

    fn definition(self: Arc<Self>) -> OpRef {
        (*self).clone()
    }
}

impl OpRef {
    fn default_attrs(&self) -> Result<Vec<crate::Attr>> {
        (0..self.attrs.len()).map(|i| self.default_attr(i)).collect()
    }

    fn infer_defaults(&self, inputs: &[&Tensor]) -> Result<Tensor> {
        let args: Vec<Arg<'_>> = inputs.iter().map(|t| Arg::Tensor(t)).collect();
        infer(self, &args, &self.default_attrs()?)?
            .into_iter()
            .next()
            .ok_or_else(|| crate::Error::type_(format!("op '{}' returns no tensor, expected one", self.name)))
    }
}

fn metas(of: impl Iterator<Item = (Shape, DType)>) -> Result<Vec<Tensor>> {
    of.map(|(shape, dtype)| Tensor::empty(shape, dtype, Device::Meta)).collect()
}

/// A gradient that runs the op again.
struct Replay {
    op: OpRef,
    inputs: Vec<Tensor>,
}

impl GradientFunction for Replay {
    fn backward(&self, grad_output: &Tensor) -> Result<Vec<Option<Tensor>>> {
        vjp(&self.op, &self.inputs.iter().collect::<Vec<_>>(), grad_output)
    }
}
