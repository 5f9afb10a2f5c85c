//! The elementary functions, written so that the loops they stand in vectorize.
//!
//! Each is straight-line scalar code: no branch, no call, no table that is looked up. What other code decides by
//! branches is computed both ways and chosen ([`bits`]). All levels compute the same bits: a product is fused with a sum
//! either by `mul_add`, which rounds once everywhere, or not at all.
//!
//! `mul_add` is one instruction of AVX2's level and above and of NEON, and a call at the baseline of x86-64. So the functions
//! that use it are slow there, but none the less exact.
//!
//! | | computed in | error, in ULP |
//! |---|---|---|
//! | [`single`], those that are written here | `f32`, fused | below 1, over all 2³² arguments |
//! | [`widened`], the other functions of `f32` | `f64` | below 0.52, over all 2³² arguments |
//! | [`double`] | `f64`, and pairs of them | below 1, sampled |
//!
//! `cargo xtask ulp` measures it; `docs/performance.md` has a table of the worst cases. The polynomials were made by
//! `kernels/fit/fit.py`.

mod bits;
pub(crate) mod double;
mod error;
mod pair;
mod polynomial;
mod sigmoid;
pub(crate) mod single;
mod widened;
