//! The reverse mode of differentiation for cell bodies.
//!
//! A cell body is generic over its number, so it also runs at [`Traced`] numbers, which record every step on a [`Tape`]. A sweep
//! over the tape in reverse order computes all partial derivatives of a weighted sum of the results. The rule of each step is the
//! step at [`Dual`](crate::Dual) numbers, so there is one table of derivatives.
//!
//! A body may branch on its numbers. If it does not, the recorded steps are the same for every cell of a shape, and
//! [`Lanes`] repeats a [`Recording`] of them for many cells side by side in vector registers.

mod function;
mod lanes;
mod number;
mod recording;
mod rule;
mod tape;

pub use lanes::Lanes;
pub use number::Traced;
pub use recording::Recording;
pub use tape::{Differentiable, Tape};
