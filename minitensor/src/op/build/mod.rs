//! Ops created at run time: from objects, closures and programs.

#[cfg(feature = "engine")]
mod builder;
mod custom_op;
#[cfg(feature = "engine")]
mod detached;
#[cfg(feature = "engine")]
mod elements;
mod object;
mod op_ref;
#[cfg(feature = "engine")]
mod portable;
#[cfg(feature = "engine")]
mod rows;

#[cfg(feature = "engine")]
pub use builder::CustomOpBuilder;
pub use custom_op::{CustomOp, GradientFunction};
#[cfg(feature = "engine")]
pub use portable::{Portable, PortableCall, PortableGradient, PortableInput, PortableOutput, PortableProgram};
