//! Operations: their definition ([`OpDef`]), their registry ([`registry`]), and their calls ([`dispatch`]).

mod bind;
mod call;
mod custom_op;
mod def;
pub(crate) mod dtype_rule;
mod entry;
mod infer;
mod kernel;
mod object;
mod program;
mod replay;
pub(crate) mod shape_rule;

pub use bind::{bind, slots};
pub use call::{Arg, Call, Outputs, Value};
pub use custom_op::{CustomOp, GradientFunction};
pub use def::*;
pub use entry::OpEntry;
pub use infer::infer;
pub use kernel::*;
pub use program::ProgramFn;
pub use shape_rule::{Arithmetic, CoreShapes, Dim, Dims, Predicate, Relation};

/// The modules that run ops, as opposed to those that define them.
#[cfg(feature = "engine")]
macro_rules! engine {
    ($($visibility:vis mod $name:ident;)*) => { $($visibility mod $name;)* };
}
#[cfg(feature = "engine")]
engine! {
    mod builder;
    mod frame;
    pub(crate) mod gradients;
    pub mod names;
    mod op_name;
    pub(crate) mod pullback;
    pub(crate) mod reshaped;
    pub mod registry;
    pub(crate) mod trace;
    mod vjp;
}
#[cfg(feature = "engine")]
pub(crate) use self::frame::Frame;
#[cfg(feature = "engine")]
pub use self::{builder::CustomOpBuilder, gradients::Gradients, op_name::OpName, vjp::vjp};
#[cfg(feature = "engine")]
pub use crate::dispatch::{dispatch, dispatch_one};

#[cfg(not(feature = "engine"))]
pub use crate::guest::{Gradients, OpName, dispatch, dispatch_one, vjp};
