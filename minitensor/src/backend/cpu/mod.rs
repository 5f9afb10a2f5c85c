//! The CPU: loops over elements, core cells and programs, for tensors of any layout.

pub(crate) mod cells;
pub(crate) mod elements;
mod pairs;
pub(crate) mod programs;
pub(crate) mod strided;
