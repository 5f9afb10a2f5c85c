//! The guest's half: what a plugin has instead of the engine. Tensors are the host's, ops are called through it, and the definitions
//! of this library go to it as tables.

mod backward_call;
mod call;
mod export;
mod host;
pub mod start;
pub mod tensor;

pub use call::{Gradients, OpName, dispatch, dispatch_one, vjp};

/// What a gradient gets to see.
pub mod autograd {
    pub use super::backward_call::BackwardCall;
}

/// Stopping a long call.
pub mod interrupt {
    pub use super::host::check_interrupt as check;
}
