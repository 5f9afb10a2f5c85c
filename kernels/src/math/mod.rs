//! The elementary functions, written so that the loops they stand in vectorize.
//!
//! Each is straight-line scalar code: no branch, no call, no table that is looked up, no instruction that some levels
//! lack. What other code decides by branches is computed both ways and chosen ([`bits`]). No product is fused with a
//! sum, as only some levels could, so all levels compute the same bits.
//!
//! The polynomials were made by `kernels/fit/fit.py`.

mod bits;
pub(crate) mod double;
mod pair;
mod polynomial;
pub(crate) mod single;
