//! The arguments and outputs of a call.

pub(crate) mod axis_layout;
mod bind;
pub(crate) mod dtype_rule;
mod infer;
pub(crate) mod shape_rule;

pub use bind::{bind, slots};
pub use infer::infer;
#[cfg(feature = "engine")]
pub use infer::{infer_dtypes, number_dtypes};
pub use shape_rule::{Arithmetic, CoreShapes, Dim, Dims, Predicate, Relation};

use minitensor_kernels::Const;
use smallvec::SmallVec;

use crate::attr::Attr;
use crate::op::def::OpDef;
use crate::tensor::Tensor;

/// The argument of a tensor input.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// An optional input that is not given.
    None,
    /// A tensor.
    Tensor(&'a Tensor),
    /// A plain number, which adopts the dtype of the tensor arguments.
    Number(Const),
}

impl<'a> From<&'a Tensor> for Arg<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Arg::Tensor(tensor)
    }
}

impl<'a> From<Option<&'a Tensor>> for Arg<'a> {
    fn from(tensor: Option<&'a Tensor>) -> Self {
        tensor.map_or(Arg::None, Arg::Tensor)
    }
}

/// The outputs of a call.
#[derive(Debug)]
pub struct Outputs(pub(crate) SmallVec<[Tensor; 1]>);

impl Outputs {
    /// The only output.
    pub fn single(mut self) -> Tensor {
        self.0.swap_remove(0)
    }

    /// All outputs.
    pub fn as_mut_slice(&mut self) -> &mut [Tensor] {
        &mut self.0
    }

    /// The first `N` outputs.
    pub fn array<const N: usize>(self) -> [Tensor; N] {
        let mut outputs = self.0.into_iter();
        std::array::from_fn(|_| outputs.next().expect("the op has as many outputs as its definition says"))
    }

    /// All outputs.
    pub fn into_vec(self) -> Vec<Tensor> {
        self.0.into_vec()
    }
}

/// The call of a body over whole tensors.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub(crate) op: &'a OpDef,
    pub(crate) inputs: &'a [Option<&'a Tensor>],
    pub(crate) attrs: &'a [Attr],
}

impl<'a> Call<'a> {
    /// The op.
    pub fn op(&self) -> &'a OpDef {
        self.op
    }

    /// The tensor of a required input.
    pub fn tensor(&self, index: usize) -> &'a Tensor {
        self.inputs[index].expect("a required input is there")
    }

    /// The tensor of an optional input, if it is given.
    pub fn optional(&self, index: usize) -> Option<&'a Tensor> {
        self.inputs[index]
    }

    /// The tensors of a variadic input, which is always the last input.
    pub fn variadic(&self, index: usize) -> Vec<&'a Tensor> {
        self.inputs[index..].iter().copied().flatten().collect()
    }

    /// All inputs, flat.
    pub fn inputs(&self) -> &'a [Option<&'a Tensor>] {
        self.inputs
    }

    /// The attributes, in the order of the definition.
    pub fn attrs(&self) -> &'a [Attr] {
        self.attrs
    }
}

/// An argument of a call by name: a tensor, a number or an attribute.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// Several tensors, for a variadic input.
    Tensors(Vec<&'a Tensor>),
    /// A number or an attribute.
    Attr(Attr),
}

impl<'a> From<&'a Tensor> for Value<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Value::Tensor(tensor)
    }
}

impl<T: Into<Attr>> From<T> for Value<'_> {
    fn from(value: T) -> Self {
        Value::Attr(value.into())
    }
}
