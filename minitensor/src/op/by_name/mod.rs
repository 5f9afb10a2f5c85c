//! [`OpName`]: a reference to an op by name.

pub mod names;
pub(crate) mod reshape;

use std::sync::OnceLock;

use crate::error::{Error, Result, counted};
use crate::op::call::Value;
use crate::op::def::OpRef;
use crate::op::{bind, dispatch, dispatch_one, registry};
use crate::tensor::Tensor;

/// A reference to an op by name. The first call looks the op up.
pub struct OpName {
    name: &'static str,
    op: OnceLock<OpRef>,
}

impl OpName {
    /// A reference to the op with this name. The first call returns an error if the op does not exist.
    pub const fn new(name: &'static str) -> OpName {
        OpName { name, op: OnceLock::new() }
    }

    /// The name of the op.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The op.
    #[inline]
    pub fn get(&self) -> Result<&OpRef> {
        if let Some(op) = self.op.get() {
            return Ok(op);
        }
        let found = registry::get(self.name)?;
        Ok(self.op.get_or_init(|| found))
    }

    /// Calls the op with positional arguments and keywords. Tensors precede attributes, as in Python.
    pub fn call(&self, args: &[Value<'_>], keywords: &[(&str, Value<'_>)]) -> Result<Tensor> {
        let op = self.get()?;
        let (inputs, attrs) = bind(op, args, keywords)?;
        dispatch_one(op, &inputs, &attrs)
    }

    /// Calls an op of `N` outputs.
    pub fn call_many<const N: usize>(&self, args: &[Value<'_>], keywords: &[(&str, Value<'_>)]) -> Result<[Tensor; N]> {
        self.call_all(args, keywords)?.try_into().map_err(|v: Vec<Tensor>| {
            Error::type_(format!("op '{}' returns {}, expected {N}", self.name, counted(v.len(), "tensor")))
        })
    }

    /// Calls an op of any number of outputs.
    pub fn call_all(&self, args: &[Value<'_>], keywords: &[(&str, Value<'_>)]) -> Result<Vec<Tensor>> {
        let op = self.get()?;
        let (inputs, attrs) = bind(op, args, keywords)?;
        Ok(dispatch(op, &inputs, &attrs)?.into_vec())
    }
}
