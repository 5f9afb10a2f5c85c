//! [`CustomOp`] for definitions of this library: the host computes.

use std::sync::Arc;

use super::call::{Op, dispatch};
use super::host::host;
use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Arg, Backward, CustomOp, GradientFunction, OpRef};
use crate::plugin::border::ask;
use crate::tensor::{Device, Shape, Tensor};

impl CustomOp for OpRef {
    fn name(&self) -> &str {
        &self.name
    }

    fn validate_inputs(&self, inputs: &[&Tensor]) -> Result<()> {
        let metas = metas(inputs.iter().map(|t| (t.shape().clone(), t.dtype())))?;
        self.forward(&metas.iter().collect::<Vec<_>>()).map(|_| ())
    }

    fn forward(&self, inputs: &[&Tensor]) -> Result<Tensor> {
        let args: Vec<Arg<'_>> = inputs.iter().map(|t| Arg::Tensor(t)).collect();
        let attrs = self.attrs.iter().map(|a| {
            let missing = || Error::type_(format!("op '{}' needs the attribute '{}'", self.name, a.name));
            a.default.clone().ok_or_else(missing)
        });
        let outputs = dispatch(self, &args, &attrs.collect::<Result<Vec<Attr>>>()?)?.into_vec();
        outputs.into_iter().next().ok_or_else(|| Error::type_(format!("op '{}' gives no tensor", self.name)))
    }

    fn create_gradient_function(&self, inputs: &[&Tensor], _output: &Tensor) -> Option<Arc<dyn GradientFunction>> {
        if matches!(self.backward, Backward::None(_) | Backward::NotNeeded) {
            return None;
        }
        Some(Arc::new(Replay { op: self.clone(), inputs: inputs.iter().map(|t| (*t).clone()).collect() }))
    }

    fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    fn output_shape(&self, input_shapes: &[&Shape]) -> Result<Shape> {
        let metas = metas(input_shapes.iter().map(|s| ((*s).clone(), DType::F32)))?;
        Ok(self.forward(&metas.iter().collect::<Vec<_>>())?.shape().clone())
    }

    fn output_dtype(&self, input_dtypes: &[DType]) -> Result<DType> {
        let metas = metas(input_dtypes.iter().map(|d| (Shape::default(), *d)))?;
        Ok(self.forward(&metas.iter().collect::<Vec<_>>())?.dtype())
    }

    fn output_device(&self, input_devices: &[&Device]) -> Result<Device> {
        Ok(input_devices.first().map_or(Device::Cpu, |d| **d))
    }

    fn definition(self: Arc<Self>) -> OpRef {
        (*self).clone()
    }
}

fn metas(of: impl Iterator<Item = (Shape, DType)>) -> Result<Vec<Tensor>> {
    of.map(|(shape, dtype)| Tensor::empty(shape, dtype, Device::Meta)).collect()
}

/// Computes the gradient by having the host run the op once more, recorded.
struct Replay {
    op: OpRef,
    inputs: Vec<Tensor>,
}

impl GradientFunction for Replay {
    fn backward(&self, grad_output: &Tensor) -> Result<Vec<Option<Tensor>>> {
        let (host, op) = (host()?, Op::find(&self.op.name)?);
        let inputs: Vec<_> = self.inputs.iter().map(Tensor::handle).collect();
        let mut gradients = vec![std::ptr::null_mut(); inputs.len()];
        // SAFETY: a function of the host, called as the ABI says.
        ask(|sink| unsafe {
            let (given, out) = (inputs.as_ptr(), gradients.as_mut_ptr());
            (host.op_vjp)(op.as_ptr(), given, inputs.len(), grad_output.handle(), out, sink)
        })?;
        // SAFETY: the host gave them.
        let tensor = |handle| std::ptr::NonNull::new(handle).map(|h| unsafe { Tensor::from_handle(h) }).transpose();
        gradients.into_iter().map(tensor).collect()
    }
}
