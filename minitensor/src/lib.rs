//! Tensors, operations that are defined once, and their gradients.
//!
//! An op is a function with the attribute [`#[custom_op]`](macro@custom_op). The macro generates an [`OpDef`] from it. The
//! [`registry`] collects the ops of all linked crates, [`dispatch`](op::dispatch) calls them, and [`autograd`]
//! differentiates them.
//!
//! Recommended reading order: [`dtype`], [`tensor`], [`op`], [`autograd`].

#![warn(missing_docs)]
// Plugins use only a part of the code for shapes and clauses.
#![cfg_attr(not(feature = "engine"), allow(dead_code))]

extern crate self as minitensor;

#[macro_use]
mod macros;

#[doc(hidden)]
#[path = "private/mod.rs"]
#[allow(missing_docs)]
pub mod __private;
pub mod attr;
#[cfg(feature = "engine")]
pub mod autograd;
#[cfg(feature = "engine")]
pub mod backend;
#[cfg(feature = "engine")]
pub mod clause;
#[cfg(feature = "engine")]
mod dispatch;
pub mod dtype;
pub mod error;
#[cfg(feature = "engine")]
pub mod fork;
#[cfg(feature = "engine")]
pub mod graph;
#[cfg(not(feature = "engine"))]
mod guest;
#[cfg(feature = "engine")]
pub mod interrupt;
#[cfg(feature = "engine")]
pub mod lazy;
pub mod op;
pub mod plugin;
#[cfg(feature = "engine")]
mod precision;
#[cfg(feature = "engine")]
pub mod profiler;
#[cfg(feature = "engine")]
pub mod random;
mod scoped;
pub mod stop;
#[cfg(feature = "engine")]
pub mod tensor;
#[cfg(feature = "engine")]
pub mod testing;
#[cfg(feature = "engine")]
pub mod tuning;

pub use attr::{Attr, AttrEnum, AttrKind};
pub use autograd::BackwardCall;
#[cfg(feature = "engine")]
pub use autograd::NoGrad;
pub use dtype::{DType, DTypeSet, Scalar};
pub use error::{Error, ErrorKind, MinitensorError, Result};
#[cfg(not(feature = "engine"))]
pub use guest::{autograd, interrupt, tensor};
pub use minitensor_kernels as kernels;
pub use minitensor_macros::{custom_op, op_fn};
pub use op::{CustomOp, GradientFunction, OpDef, OpRef, dispatch};
#[cfg(feature = "engine")]
pub use op::{CustomOpBuilder, registry};
pub use plugin::{CustomOpRegistry, Plugin, PluginInfo, VersionInfo};
pub use tensor::{Device, Shape, Tensor};

/// Seed name of [`DType`].
pub type DataType = DType;

/// The imports for op definitions.
pub mod prelude {
    pub use minitensor_kernels::cartesian::Complex;
    pub use minitensor_kernels::{
        Bits, Columns, ColumnsMut, Element, Field, Float, Int, IntRow, Machine, Mask, Num, Real, RealRow, Row,
    };
    pub use ndarray::s;
    pub use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, ArrayView3, ArrayView4, ArrayView5};
    pub use ndarray::{ArrayViewMut1, ArrayViewMut2, ArrayViewMut3, ArrayViewMut4, ArrayViewMut5};

    pub use crate::attr::AttrEnum;
    pub use crate::dtype::DType;
    pub use crate::error::{Error, Result};
    pub use crate::plugin;
    pub use crate::tensor::{Device, Shape, Tensor};
    pub use minitensor_macros::{AttrEnum, custom_op, op_fn};
}
