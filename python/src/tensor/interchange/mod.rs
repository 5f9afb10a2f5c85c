//! Import and export of data: NumPy, DLPack, the buffer protocol, nested lists and numbers.
//!
//! [`array_like`] imports data of any form, with the other files.

pub mod array_like;
mod buffer;
pub mod copy;
pub mod dlpack;
pub mod exchange;
pub mod foreign;
pub mod ndarray;
pub mod nested;
pub mod number;
pub mod numbers;
pub mod numpy;
pub mod sequence;
