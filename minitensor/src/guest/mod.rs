//! The guest side, which replaces the engine in a plugin. Tensors are handles of host tensors, ops are called through the host,
//! and the definitions of this library are exported to it as tables.

mod backward_call;
mod call;
mod export;
mod host;
pub(crate) mod reshape;
pub mod start;
pub mod tensor;

pub use call::{Gradients, OpName, dispatch, dispatch_one, vjp};

/// The view of a call that a gradient function receives.
pub mod autograd {
    pub use super::backward_call::BackwardCall;
}

/// Interruption of long calls.
pub mod interrupt {
    pub use super::host::check_interrupt as check;
}
