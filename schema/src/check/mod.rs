//! The rules that a definition must follow. They compare clauses with the signature of their op. A check returns all problems.

mod formula;
mod property;
mod resolve;
mod shape;
mod signature;

pub use formula::{formula, resolved};
pub use property::{properties, replaced};
pub use resolve::Resolved;
pub use shape::{core_shapes, outputs, predicates, shape};
pub use signature::{MOST_CANDIDATES, MOST_KERNELS, MOST_VARIABLES, axis, kernels, signature};
