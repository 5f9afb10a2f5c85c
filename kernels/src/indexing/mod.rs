//! Elements by index or by order: gathering, adding at indices, nonzero elements, sorting.

mod index;
pub mod nonzero;
pub mod sort;

pub use index::{IndexError, add_rows, take, take_rows, wrap};
