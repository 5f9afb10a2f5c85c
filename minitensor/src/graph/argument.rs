//! [`Argument`]: what a graph assumes about an argument.

use std::sync::{Arc, Weak};

use crate::dtype::DType;
use crate::tensor::{Device, Shape, Storage, Strides, Tensor};

/// The properties of an argument that were used while the graph was recorded.
#[derive(PartialEq)]
pub(super) struct Argument {
    shape: Shape,
    strides: Strides,
    dtype: DType,
    device: Device,
    requires_grad: bool,
    is_leaf: bool,
    shares: Sharing,
}

/// The first tensor with the same memory, among the earlier arguments and the captured tensors, and the distance to it
/// in elements.
type Sharing = Option<(usize, isize)>;

impl Argument {
    /// The properties of all arguments.
    pub fn all(args: &[Tensor], captured: &[Weak<Storage>]) -> Vec<Argument> {
        let properties = |(i, t): (usize, &Tensor)| Argument {
            shape: t.shape().clone(),
            strides: t.strides().into(),
            dtype: t.dtype(),
            device: t.device(),
            requires_grad: t.requires_grad(),
            is_leaf: t.is_leaf(),
            shares: sharing(args, i, captured),
        };
        args.iter().enumerate().map(properties).collect()
    }

    /// Whether argument `i` has these properties.
    pub fn is_like(&self, args: &[Tensor], i: usize, captured: &[Weak<Storage>]) -> bool {
        let t = &args[i];
        *t.shape() == self.shape
            && t.dtype() == self.dtype
            && t.strides() == &self.strides[..]
            && t.device() == self.device
            && t.requires_grad() == self.requires_grad
            && (!self.requires_grad || t.is_leaf() == self.is_leaf)
            && sharing(args, i, captured) == self.shares
    }

    pub fn requires_grad(&self) -> bool {
        self.requires_grad
    }
}

fn sharing(args: &[Tensor], i: usize, captured: &[Weak<Storage>]) -> Sharing {
    let t = &args[i];
    if let Some(j) = args[..i].iter().position(|other| other.shares_storage(t)) {
        return Some((j, t.offset() as isize - args[j].offset() as isize));
    }
    let at = captured.iter().position(|storage| storage.as_ptr() == Arc::as_ptr(t.storage()))?;
    Some((args.len() + at, t.offset() as isize))
}
