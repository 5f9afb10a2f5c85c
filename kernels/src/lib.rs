//! Loops over slices.

#![warn(missing_docs)]

mod scalar;

pub use scalar::{Const, Element, Field, Float, Int, Machine, Mask, Num, Real, lit};
