//! Reverse-mode differentiation. The graph belongs to the tensors: a tensor that was computed keeps the
//! [`Node`] that computed it, and a node keeps the edges to where its inputs came from. There is no tape.

mod backward_call;
mod engine;
mod meta;
mod mode;
mod node;
mod saved;
mod view;

pub use backward_call::BackwardCall;
pub use engine::{Options, backward, grad};
pub use meta::{GradMeta, Hook};
pub use mode::{EnableGrad, GradMode, NoGrad, is_grad_enabled, set_grad_enabled};
pub(crate) use node::Meta;
pub use node::{Edge, Node};
pub(crate) use saved::Saved;
pub(crate) use view::Whole;
