//! The functions of `f32`.
//!
//! Those that are written here are computed in `f32`, so that a vector holds twice as many as by way of `f64`. Where
//! one single would lose the last digit, two carry it. The error is below 0.92 ULP. The others are [`widened`](super::widened).

mod bits;
mod error;
mod exp;
mod log;
mod polynomial;
mod sigmoid;
mod softplus;

pub use super::widened::*;
pub use error::{erf, erfc, normal_cdf};
pub use exp::{exp, exp2, expm1};
pub use log::{log, log1p, log2, log10};
pub use sigmoid::{sigmoid, silu, tanh};
pub use softplus::{log_sigmoid, softplus};
