//! How a call carries its arguments.

use minitensor_kernels::Const;
use smallvec::SmallVec;

use super::def::OpDef;
use crate::attr::Attr;
use crate::tensor::Tensor;

/// What stands for a tensor input.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// An optional input that isn't given.
    None,
    /// A tensor.
    Tensor(&'a Tensor),
    /// A plain number, which takes the dtype of the tensors beside it.
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

/// What a call gives.
#[derive(Debug)]
pub struct Outputs(pub(crate) SmallVec<[Tensor; 1]>);

impl Outputs {
    /// The one output.
    pub fn single(mut self) -> Tensor {
        self.0.swap_remove(0)
    }

    /// The first two.
    pub fn tuple2(self) -> (Tensor, Tensor) {
        let [a, b] = self.array();
        (a, b)
    }

    /// The first three.
    pub fn tuple3(self) -> (Tensor, Tensor, Tensor) {
        let [a, b, c] = self.array();
        (a, b, c)
    }

    /// The first four.
    pub fn tuple4(self) -> (Tensor, Tensor, Tensor, Tensor) {
        let [a, b, c, d] = self.array();
        (a, b, c, d)
    }

    fn array<const N: usize>(self) -> [Tensor; N] {
        let mut outputs = self.0.into_iter();
        std::array::from_fn(|_| outputs.next().expect("the op has as many outputs as its definition says"))
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<Tensor> {
        self.0.into_vec()
    }
}

/// A call as a body over whole tensors sees it.
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

    /// The tensor at a required input.
    pub fn tensor(&self, index: usize) -> &'a Tensor {
        self.inputs[index].expect("a required input is there")
    }

    /// The tensor at an optional input.
    pub fn optional(&self, index: usize) -> Option<&'a Tensor> {
        self.inputs[index]
    }

    /// The tensors of a variadic input, which is the last one.
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
    /// Several, for a variadic input.
    Tensors(Vec<&'a Tensor>),
    /// Anything else.
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
