//! Operations:
//!
//! | module | contents |
//! |---|---|
//! | [`def`] | [`OpDef`], the definition of an op as data |
//! | [`kernel`], [`program`] | the kernels of an op by kind of device, and the program of its body |
//! | [`registry`] | all ops by name |
//! | [`call`] | arguments, and the rules for dtypes, shapes and axes |
//! | [`gradient`] | derived gradients |
//! | [`by_name`] | ops that the engine itself calls |
//! | [`build`] | ops created at run time |

pub(crate) mod build;
pub(crate) mod call;
mod def;
mod entry;
mod kernel;
pub(crate) mod program;

// The modules that run ops, as opposed to those that define them.
#[cfg(feature = "engine")]
mod arguments;
#[cfg(feature = "engine")]
pub mod by_name;
#[cfg(feature = "engine")]
pub(crate) mod element_program;
#[cfg(feature = "engine")]
mod example;
#[cfg(feature = "engine")]
pub(crate) mod gradient;
#[cfg(feature = "engine")]
pub(crate) mod internal;
#[cfg(feature = "engine")]
#[cfg(feature = "engine")]
pub mod registry;
#[cfg(feature = "engine")]
pub(crate) mod row_kernel;
#[cfg(feature = "engine")]
pub(crate) mod variants;

pub use build::{CustomOp, GradientFunction};
pub use call::{Arg, Arithmetic, Call, CoreShapes, Dim, Dims, Outputs, Predicate, Relation, Value, bind, infer, slots};
pub use def::*;
pub use entry::{Called, CallsEntry, KernelEntry, OpEntry};
pub use kernel::*;
pub use program::ProgramFn;

#[cfg(feature = "engine")]
pub use self::{
    arguments::{Argument, Arguments},
    build::{
        CustomOpBuilder, Portable, PortableCall, PortableGradient, PortableInput, PortableOutput, PortableProgram,
    },
    by_name::OpName,
    call::{infer_dtypes, number_dtypes},
    gradient::{Gradients, gradient as functional_gradient, results_read, vjp},
};
#[cfg(feature = "engine")]
pub(crate) use self::{
    internal::{history_op, internal_op},
    program::runs_at,
};
#[cfg(feature = "engine")]
pub use crate::dispatch::{dispatch, dispatch_at, dispatch_one};

#[cfg(not(feature = "engine"))]
pub use crate::guest::{Gradients, OpName, dispatch, dispatch_one, vjp};
