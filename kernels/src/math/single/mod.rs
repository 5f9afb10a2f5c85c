//! The functions of `f32`.
//!
//! The functions in this module are computed in `f32`, so that a vector holds twice as many elements as in `f64`.
//! Values that need more digits than one single are stored in two. The error is below 0.95 ULP. The other functions are
//! [`widened`](super::widened).

mod bits;
mod error;
mod exp;
mod half;
mod log;
mod polynomial;
mod sigmoid;
mod softplus;

pub use super::widened::*;
pub use error::{erf, erfc, normal_cdf, normal_pdf};
pub use exp::{exp, exp2, expm1};
pub use half::{as_bfloat16, as_float16, nearest_float16};
pub use log::{log, log1p, log2, log10};
pub use sigmoid::{sigmoid, silu, tanh};
pub use softplus::{log_sigmoid, softplus};
