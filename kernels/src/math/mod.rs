//! The elementary functions, written so that loops over them vectorize.
//!
//! Each function is straight-line scalar code without branches, calls or table look-ups. Where other implementations
//! branch, both results are computed and one is selected ([`binary`]). All levels compute the same bits: a product and a
//! sum are fused only by `mul_add`, which rounds once at every level.
//!
//! `mul_add` is one instruction at the level of AVX2 and above and on NEON, but a call at the baseline of x86-64.
//! Functions that use it are slow there, but equally accurate.
//!
//! | | computed in | error, in ULP |
//! |---|---|---|
//! | [`single`]: the functions of `f32` with their own implementation | `f32`, fused | below 1, over all 2³² arguments |
//! | [`widened`]: the other functions of `f32` | `f64` | below 0.52, over all 2³² arguments |
//! | [`double`] | `f64`, and pairs of them | below 1, sampled |
//!
//! `cargo xtask ulp` measures the errors; `docs/performance.md` lists the worst cases. `kernels/fit/fit.py` computes
//! the polynomials.

pub(crate) mod binary;
mod bits;
pub(crate) mod double;
mod error;
mod pair;
mod polynomial;
mod sigmoid;
pub(crate) mod single;
mod widened;
