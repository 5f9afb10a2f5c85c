//! Loops over slices: what a body computes with, and what drives it over memory.
//!
//! The algebra of [`Element`] and its subtraits is implemented by machine numbers and by [`Dual`]; [`map()`],
//! [`rows`], [`copy()`] and [`matmul`] run it over contiguous or strided memory, vectorized for the CPU at hand
//! ([`simd`]) and, where that pays, on several threads ([`threads`]). Nothing here knows what a tensor is.
//!
//! The feature `engine`, on by default, has what runs a tensor library: the pool of threads, matrix products, convolutions, the
//! interpreter of programs. A plugin does without, as it is lent these by its host.

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
mod truth;
#[cfg(feature = "engine")]
pub mod window;

pub use cast::Cast;
pub use copy::{copy, copy_plane};
pub use dual::Dual;
#[cfg(feature = "engine")]
pub use gemm::matmul;
pub use half::{bf16, f16};
pub use map::{Load, Map, Store, map};
pub use num_complex::Complex;
pub use row::Row;
pub use scalar::{Const, Element, Field, Float, Int, Machine, Mask, Num, Real, lit};
pub use stream::LARGE;
pub use truth::Truth;
