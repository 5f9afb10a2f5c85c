//! [`CustomOp`]: an op as an object. `#[custom_op]` implements it; so can anyone by hand.

use std::sync::Arc;

use super::def::OpRef;
use super::object;
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::{Device, Shape, Tensor};

/// The gradient of one call, by position.
pub trait GradientFunction: Send + Sync {
    /// One gradient for each input, `None` where there is none, from the cotangent of the output.
    fn backward(&self, grad_output: &Tensor) -> Result<Vec<Option<Tensor>>>;
}

/// An operation of one output and no attributes, seen from outside. Ops made by `#[custom_op]` with more than that are
/// called here with the defaults of their attributes, and give their first output.
pub trait CustomOp: Send + Sync {
    /// The name it is registered under.
    fn name(&self) -> &str;
    /// Whether these inputs will do; the error says why not.
    fn validate_inputs(&self, inputs: &[&Tensor]) -> Result<()>;
    /// Computes the output.
    fn forward(&self, inputs: &[&Tensor]) -> Result<Tensor>;
    /// The gradient of the call that gave `output`; `None` if there is none.
    fn create_gradient_function(&self, inputs: &[&Tensor], output: &Tensor) -> Option<Arc<dyn GradientFunction>>;
    /// How many tensors it takes.
    fn num_inputs(&self) -> usize;
    /// The shape of the output.
    fn output_shape(&self, input_shapes: &[&Shape]) -> Result<Shape>;
    /// The dtype of the output.
    fn output_dtype(&self, input_dtypes: &[DType]) -> Result<DType>;
    /// The device of the output.
    fn output_device(&self, input_devices: &[&Device]) -> Result<Device>;
    /// The op as data. What is written by hand needs no definition of its own.
    fn definition(self: Arc<Self>) -> OpRef
    where
        Self: 'static,
    {
        object::definition(self)
    }
}
