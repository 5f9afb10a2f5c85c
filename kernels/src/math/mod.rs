//! The elementary functions, written so that the loops they stand in vectorize.
//!
//! Each is straight-line scalar code: no branch, no call, no table that is looked up, no instruction that some levels
//! lack. What other code decides by branches is computed both ways and chosen ([`bits`]). No product is fused with a
//! sum, as only some levels could, so all levels compute the same bits.
//!
//! | | computed in | error, in ULP |
//! |---|---|---|
//! | [`single`], all functions | `f64` | below 0.52, over all 2³² arguments |
//! | [`double`], those that are written here | `f64`, and pairs of them | below 0.9, sampled |
//! | [`double`], those of the platform | | the platform's: about 1 |
//!
//! `cargo xtask ulp` measures it; `docs/performance.md` has a table of the worst cases. The polynomials were made by
//! `kernels/fit/fit.py`.

mod bits;
pub(crate) mod double;
mod pair;
mod polynomial;
pub(crate) mod single;
