//! [`Captured`]: a tensor that a graph reads although it is not an argument.

use std::sync::{Arc, Weak};

use crate::dtype::DType;
use crate::tensor::{Layout, Storage, Tensor, WeakTensor};

/// A tensor that existed before the recording. It is not kept alive: if its owner replaces it, the graph is no longer
/// valid.
pub(super) struct Captured {
    handle: WeakTensor,
    storage: Weak<Storage>,
    layout: Layout,
    dtype: DType,
    requires_grad: bool,
}

impl Captured {
    pub fn new(t: &Tensor) -> Captured {
        Captured {
            handle: t.downgrade(),
            storage: Arc::downgrade(t.storage()),
            layout: t.layout().clone(),
            dtype: t.dtype(),
            requires_grad: t.requires_grad(),
        }
    }

    /// The tensor; `None` if nothing else holds it, or if it has begun or ceased to require a gradient.
    pub fn get(&self) -> Option<Tensor> {
        match self.handle.upgrade() {
            Some(t) => (t.requires_grad() == self.requires_grad).then_some(t),
            None if self.requires_grad => None,
            // The handle was a temporary one, such as a detached tensor.
            None => Some(Tensor::over(self.storage.upgrade()?, self.layout.clone(), self.dtype)),
        }
    }

    /// Its memory, to compare with that of arguments.
    pub fn memory(&self) -> Weak<Storage> {
        self.storage.clone()
    }

    pub fn requires_grad(&self) -> bool {
        self.requires_grad
    }
}
