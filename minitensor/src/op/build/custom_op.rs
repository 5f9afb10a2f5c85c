//! [`CustomOp`]: an op as an object. `#[custom_op]` implements it, and it can be implemented by hand.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Result;
use crate::op::build::object;
use crate::op::def::OpRef;
use crate::tensor::{Device, Shape, Tensor};

/// The gradient of one call.
pub trait GradientFunction: Send + Sync {
    /// Computes one gradient for each input from the cotangent of the output; `None` for an input without a gradient.
    fn backward(&self, grad_output: &Tensor) -> Result<Vec<Option<Tensor>>>;
}

/// An operation with one output and no attributes. Through this trait, other ops of `#[custom_op]` are called with the
/// defaults of their attributes, and return their first output.
pub trait CustomOp: Send + Sync {
    /// The registered name.
    fn name(&self) -> &str;
    /// Checks the inputs. The error is the reason why they are rejected.
    fn validate_inputs(&self, inputs: &[&Tensor]) -> Result<()>;
    /// Computes the output.
    fn forward(&self, inputs: &[&Tensor]) -> Result<Tensor>;
    /// The gradient of the call that returned `output`; `None` if there is none.
    fn create_gradient_function(&self, inputs: &[&Tensor], output: &Tensor) -> Option<Arc<dyn GradientFunction>>;
    /// The number of input tensors.
    fn num_inputs(&self) -> usize;
    /// The shape of the output.
    fn output_shape(&self, input_shapes: &[&Shape]) -> Result<Shape>;
    /// The dtype of the output.
    fn output_dtype(&self, input_dtypes: &[DType]) -> Result<DType>;
    /// The device of the output.
    fn output_device(&self, input_devices: &[&Device]) -> Result<Device>;
    /// The op as data. Hand-written ops can use the default.
    fn definition(self: Arc<Self>) -> OpRef
    where
        Self: 'static,
    {
        object::definition(self)
    }
}
