//! Lazy mode: calls are postponed until their results are read.
//!
//! A postponed call returns tensors whose [storage](crate::tensor::Storage) has no memory yet. Any access to elements of
//! memory that postponed calls read or write computes them first: all of them, in their order, as one
//! [graph](crate::graph). Results that nothing refers to any more are not computed.
//!
//! Autograd is not involved, since it does not read elements: histories, gradients and versions are those of immediate calls.
//!
//! | module | contents |
//! |---|---|
//! | [`mode`] | the state of each thread |
//! | [`call`] | what [`dispatch`](crate::dispatch) asks before it computes |
//! | [`pending`] | [`Pending`](pending::Pending): the postponed calls, as a graph |
//! | [`access`] | computes them before elements are read or written |
//! | [`batch`] | [`Batch`](batch::Batch): calls that are being computed |
//! | [`compiled`] | executables of graphs, by structure |
//! | [`origin`] | [`Origin`](origin::Origin): the call of the user's code that a postponed call is part of |
//! | [`failure`] | the errors of calls, for later reads of their results |

mod access;
mod batch;
pub(crate) mod call;
mod compiled;
mod failure;
mod mode;
mod origin;
mod pending;

pub(crate) use access::{access, ready, try_hold};
pub use access::{compute, set_detach};
pub use mode::{Lazy, set_lazy};
pub(crate) use mode::{is_on, note_effect};
