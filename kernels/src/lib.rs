//! Kernels: the numeric algebra that op bodies are written in, and the loops that run bodies over memory.
//!
//! Machine numbers and [`Dual`] implement the algebra of [`Element`] and its subtraits. [`map()`], [`rows`], [`copy()`]
//! and [`matmul`] run it over contiguous or strided memory. They are vectorized for the CPU ([`simd`]) and, for large
//! inputs, run on several threads ([`threads`]). This crate has no notion of a tensor.
//!
//! The feature `engine`, enabled by default, contains what the tensor library itself needs: the thread pool, matrix
//! products, convolutions and the interpreter of programs. A plugin disables it, because its host provides these.

#![warn(missing_docs)]

mod cast;
pub mod columns;
mod complex;
#[cfg(feature = "engine")]
pub mod convolution;
mod copy;
mod dual;
#[cfg(feature = "engine")]
mod gemm;
mod machine;
mod map;
mod math;
pub mod memory;
pub mod nonzero;
#[cfg(feature = "engine")]
pub mod pooling;
pub mod positions;
pub mod program;
#[cfg(feature = "engine")]
pub mod random;
pub mod row;
pub mod rows;
mod scalar;
pub mod scan;
pub mod simd;
pub mod sort;
mod special;
pub mod stop;
mod stream;
#[cfg(feature = "engine")]
pub mod threads;
#[cfg(not(feature = "engine"))]
#[path = "lent.rs"]
pub mod threads;
mod triangle;
mod truth;
#[cfg(feature = "engine")]
pub mod window;

pub use cast::Cast;
pub use copy::{contiguous, copy, copy_plane};
pub use dual::Dual;
#[cfg(feature = "engine")]
pub use gemm::matmul;
pub use half::{bf16, f16};
pub use map::{Load, Map, Store, map};
pub use num_complex::Complex;
pub use row::Row;
pub use scalar::{Const, Element, Field, Float, Int, Machine, Mask, Num, Real, lit};
pub use stream::LARGE;
pub use triangle::triangle;
pub use truth::Truth;
