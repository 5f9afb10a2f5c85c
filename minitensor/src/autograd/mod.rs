//! Reverse-mode differentiation. The tensors own the graph: a computed tensor references the [`Node`] that computed it, and
//! a node has edges to the nodes and leaves of its inputs. There is no tape.

mod as_op;
mod backward_call;
mod engine;
mod linear;
mod meta;
mod mode;
mod node;
mod reach;
mod saved;
mod view;
mod written;

pub use backward_call::BackwardCall;
pub(crate) use engine::grad_of_part;
pub use engine::{Options, backward, grad};
pub use meta::{GradMeta, Hook};
pub use mode::{EnableGrad, GradMode, NoGrad, is_grad_enabled, set_grad_enabled};
pub use node::{Edge, Node};
pub(crate) use node::{Meta, next_sequence};
pub use reach::reaches_others;
pub(crate) use saved::Saved;
pub(crate) use view::Whole;
