//! What a crate of minitensor ops needs, under one name: the attribute `custom_op`, the traits that bodies are written
//! in, tensors, errors, and the checks that an op has to pass.
//!
//! How an op is defined is told in `docs/defining-ops.md`, whose code is compiled and run here.
//!
//! ```
//! use minitensor_plugin_sdk::prelude::*;
//!
//! /// `x²/2` near 0, `|x| − 1/2` farther out.
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

/// The tests of one crate's documentation are linked together, so that here every op of the page is in the registry.
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
