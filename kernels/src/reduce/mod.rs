//! Reductions and cumulative sums along the rows or the columns of a matrix.

pub mod columns;
pub mod rows;
pub mod scan;
pub(crate) mod table;

pub use table::{Columns, ColumnsMut};
