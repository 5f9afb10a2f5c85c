//! The functions of `f64`.
//!
//! Intermediate results that need more digits than one double are stored in two ([`pair`](super::pair)). The error is
//! below 1 ULP.

mod arc;
mod area;
mod error;
mod exp;
mod gamma;
mod half;
mod hyperbolic;
mod log;
mod power;
mod root;
mod sigmoid;
mod trig;

pub use arc::{acos, asin, atan, atan2};
pub use area::{acosh, asinh, atanh};
pub use error::{erf, erfc, normal_cdf, normal_pdf};
pub use exp::{exp, exp2, expm1};
pub use gamma::lgamma;
pub use half::{as_bfloat16, as_float16};
pub use hyperbolic::{cosh, sinh};
pub use log::{log, log_sigmoid, log1p, log2, log10, logaddexp, softplus};
pub use power::{hypot, pow};
pub use root::cbrt;
pub use sigmoid::{sigmoid, silu, tanh};
pub use trig::{cos, sin, tan};
