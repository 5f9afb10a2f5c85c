//! Kernels: the numeric algebra that op bodies are written in, and the loops that run bodies over memory.
//!
//! Machine numbers and [`Dual`] implement the algebra of [`Element`] and its subtraits. [`map()`], [`rows`], [`copy()`]
//! and [`matmul`] run it over contiguous or strided memory. They are vectorized for the CPU ([`simd`]) and, for large
//! inputs, run on several threads ([`threads`]). This crate has no notion of a tensor.
//!
//! The feature `engine`, enabled by default, contains what the tensor library itself needs: the thread pool, matrix
//! products, convolutions and the interpreter of programs. A plugin disables it, because its host provides these.

#![warn(missing_docs)]

pub mod cell;
#[cfg(feature = "engine")]
pub(crate) mod code;
#[cfg(feature = "engine")]
pub mod cuda;
pub mod indexing;
mod linalg;
mod map;
mod math;
pub mod memory;
mod number;
pub mod program;
#[cfg(feature = "engine")]
pub mod random;
mod reduce;
pub mod row;
mod runtime;
#[cfg(feature = "engine")]
pub mod window;

pub use half::{bf16, f16};
pub use indexing::{nonzero, sort};
pub use linalg::triangle;
#[cfg(feature = "engine")]
pub use linalg::{Visit, matmul, matmul_in_parts, matmul_of_pairs, takes_pairs};
pub use map::{Load, Map, Store, map};
pub use memory::{LARGE, contiguous, copy, copy_plane};
pub use num_complex::Complex;
pub use number::cartesian;
pub use number::{
    BitFunction, Bits, Cast, Const, Dual, Element, Field, FieldOperand, FieldReference, Filled, Float, FloatOperand,
    Int, Machine, Mask, Num, NumOperand, NumReference, Real, RealOperand, Truth, lit,
};
pub use reduce::{Columns, ColumnsMut, columns, rows, scan};
pub use row::{IntRow, RealRow, Row};
pub use runtime::kept::Kept;
#[cfg(feature = "engine")]
pub use runtime::team;
pub use runtime::{simd, stop, threads};
#[cfg(feature = "engine")]
pub use window::{convolution, pooling};
