//! Operations: what one is ([`OpDef`]), where they are kept ([`registry`]), and how one is called ([`dispatch`]).

mod bind;
mod builder;
mod call;
mod cell;
mod custom_op;
mod def;
mod dispatch;
mod dtype_rule;
mod element;
mod frame;
pub(crate) mod gradients;
mod launch;
pub mod names;
mod program;
mod record;
pub mod registry;
pub(crate) mod shape_rule;
mod straight;
pub(crate) mod trace;

pub use bind::{bind, slots};
pub use builder::CustomOpBuilder;
pub use call::{Arg, Call, OpName, Outputs, Value};
pub use custom_op::{CustomOp, GradientFunction};
pub use def::*;
pub(crate) use dispatch::dispatch_wanted;
pub use dispatch::{dispatch, dispatch_one, infer};
pub(crate) use frame::Frame;
pub use gradients::Gradients;
pub use shape_rule::{Arithmetic, CoreShapes, Dim, Dims, Predicate, Relation};
