//! The crate for defining minitensor ops: the attribute `custom_op`, the traits of op bodies, tensors, errors, and the
//! checks of ops.
//!
//! `docs/defining-ops.md` describes how to define an op. The tests of this crate compile and run its code.
//!
//! ```
//! use minitensor_plugin_sdk::prelude::*;
//!
//! /// `x²/2` if `|x| ≤ 1`, otherwise `|x| − 1/2`.
//! #[custom_op]
//! pub fn huber<T: Float>(x: T) -> T {
//!     if x.abs() <= 1.0 { 0.5 * x * x } else { x.abs() - 0.5 }
//! }
//!
//! let x = Tensor::from_vec(vec![0.0, 1.0, -3.0], [3])?;
//! assert_eq!(huber::call(&x)?.to_vec::<f64>()?, [0.0, 0.5, 2.5]);
//! # Ok::<(), Error>(())
//! ```

#![forbid(unsafe_code)]

pub use minitensor::*;

#[cfg(doctest)]
#[doc = include_str!("../../docs/defining-ops.md")]
mod defining_ops {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/plugins-in-rust.md")]
mod plugins_in_rust {}

/// The doctests of a crate are linked into one program, so the registry contains every op of the page.
///
/// ```
/// use minitensor_ops as _;
/// use minitensor_plugin_sdk::{registry, testing::opcheck};
///
/// let ops = registry::list();
/// let documented: Vec<_> = ops.iter().filter(|op| !op.location.file.starts_with("ops/")).collect();
/// assert!(documented.len() > 20, "{} ops are documented", documented.len());
/// let reports: Vec<_> = documented.into_iter().map(|op| opcheck(op, &[])).collect();
/// let wrong: Vec<_> = reports.into_iter().filter_map(|report| report.into_result().err()).collect();
/// assert!(wrong.is_empty(), "{wrong:#?}");
/// ```
#[cfg(doctest)]
mod every_documented_op_passes_opcheck {}
