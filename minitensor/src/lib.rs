//! Tensors, operations that are defined once, and their gradients.
//!
//! An op is an annotated function, [`#[custom_op]`](macro@custom_op); the macro makes an [`OpDef`] of it, the
//! [`registry`] collects those of all linked crates, [`dispatch`](op::dispatch) calls them, [`autograd`] differentiates.
//!
//! Read in this order: [`dtype`], [`tensor`], [`op`], [`autograd`].

#![warn(missing_docs)]

extern crate self as minitensor;

#[macro_use]
mod macros;

#[doc(hidden)]
#[path = "rt/mod.rs"]
#[allow(missing_docs)]
pub mod __rt;
pub mod attr;
pub mod autograd;
pub mod clause;
pub mod dtype;
pub mod error;
pub mod interrupt;
pub mod op;
pub mod random;
pub mod tensor;
pub mod testing;

pub use attr::{Attr, AttrEnum, AttrKind};
pub use autograd::{BackwardCall, NoGrad};
pub use dtype::{DType, DTypeSet, Scalar};
pub use error::{Error, ErrorKind, MinitensorError, Result};
pub use minitensor_kernels as kernels;
pub use minitensor_macros::custom_op;
pub use op::{CustomOp, CustomOpBuilder, GradientFunction, OpDef, OpRef, dispatch, registry};
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
    pub use crate::tensor::{Device, Shape, Tensor};
    pub use minitensor_macros::{AttrEnum, custom_op};
}
