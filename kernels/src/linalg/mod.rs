//! Linear algebra: products and triangular parts of matrices.

#[cfg(feature = "engine")]
pub(crate) mod gemm;
mod triangle;

#[cfg(feature = "engine")]
pub use gemm::{Visit, matmul, matmul_in_parts, matmul_of_pairs, takes_pairs};
pub use triangle::triangle;
