//! [`Window`]: what distinguishes the tensors of one storage.

use std::sync::Arc;

use crate::dtype::DType;
use crate::tensor::{Shape, Strides, Tensor};

/// The window of a tensor in its memory.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Window {
    /// Its address.
    pub storage: usize,
    offset: usize,
    shape: Shape,
    strides: Strides,
    dtype: DType,
}

impl Window {
    /// The window of a tensor.
    pub fn of(t: &Tensor) -> Window {
        Window {
            storage: Arc::as_ptr(t.storage()).addr(),
            offset: t.offset(),
            shape: t.shape().clone(),
            strides: t.strides().into(),
            dtype: t.dtype(),
        }
    }
}
