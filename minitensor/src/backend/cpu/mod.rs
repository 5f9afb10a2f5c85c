//! The CPU: loops over elements, core cells and programs, for tensors of any layout.

pub(crate) mod cells;
pub(crate) mod elements;
pub(crate) mod epilogue;
mod pairs;
mod products;
pub(crate) mod programs;
pub(crate) mod strided;
