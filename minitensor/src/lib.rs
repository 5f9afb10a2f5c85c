//! Tensors, operations that are defined once, and their gradients.
//!
//! An op is an annotated function, [`#[custom_op]`](macro@custom_op); the macro makes an [`OpDef`] of it, the
//! [`registry`] collects those of all linked crates, [`dispatch`](op::dispatch) calls them, [`autograd`] differentiates.
//!
//! Read in this order: [`dtype`], [`tensor`], [`op`], [`autograd`].

#![warn(missing_docs)]
// A plugin uses of shapes and clauses what it hands over.
#![cfg_attr(not(feature = "engine"), allow(dead_code))]

extern crate self as minitensor;

#[macro_use]
mod macros;

#[doc(hidden)]
#[path = "rt/mod.rs"]
#[allow(missing_docs)]
pub mod __rt;
pub mod attr;
#[cfg(feature = "engine")]
pub mod autograd;
#[cfg(feature = "engine")]
mod backend;
#[cfg(feature = "engine")]
pub mod clause;
#[cfg(feature = "engine")]
mod dispatch;
pub mod dtype;
pub mod error;
#[cfg(feature = "engine")]
pub mod fork;
#[cfg(not(feature = "engine"))]
mod guest;
#[cfg(feature = "engine")]
pub mod interrupt;
pub mod op;
pub mod plugin;
#[cfg(feature = "engine")]
pub mod profiler;
#[cfg(feature = "engine")]
pub mod random;
pub mod stop;
#[cfg(feature = "engine")]
pub mod tensor;
#[cfg(feature = "engine")]
pub mod testing;

pub use attr::{Attr, AttrEnum, AttrKind};
pub use autograd::BackwardCall;
#[cfg(feature = "engine")]
pub use autograd::NoGrad;
pub use dtype::{DType, DTypeSet, Scalar};
pub use error::{Error, ErrorKind, MinitensorError, Result};
#[cfg(not(feature = "engine"))]
pub use guest::{autograd, interrupt, tensor};
pub use minitensor_kernels as kernels;
pub use minitensor_macros::custom_op;
pub use op::{CustomOp, GradientFunction, OpDef, OpRef, dispatch};
#[cfg(feature = "engine")]
pub use op::{CustomOpBuilder, registry};
pub use plugin::{CustomOpRegistry, Plugin, PluginInfo, VersionInfo};
pub use tensor::{Device, Shape, Tensor};

/// Seed name of [`DType`].
pub type DataType = DType;

/// What a file of op definitions needs.
pub mod prelude {
    pub use minitensor_kernels::{Element, Field, Float, Int, Machine, Mask, Num, Real, Row};
    pub use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayView4, ArrayView5};
    pub use ndarray::{ArrayViewMut1, ArrayViewMut2, ArrayViewMut3, ArrayViewMut4, ArrayViewMut5};

    pub use crate::attr::AttrEnum;
    pub use crate::dtype::DType;
    pub use crate::error::{Error, Result};
    pub use crate::plugin;
    pub use crate::tensor::{Device, Shape, Tensor};
    pub use minitensor_macros::{AttrEnum, custom_op};
}
