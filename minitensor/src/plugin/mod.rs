//! Plugins that are shared libraries. Host and plugin share only the [ABI](abi): plain tables and functions.
//!
//! The [host] loads a library and converts its tables to ops. A plugin written with `#[custom_op]` is built without the
//! feature `engine`. This crate is then the guest: a `Tensor` is a handle of a host tensor, and definitions become tables.

#[doc(hidden)]
pub mod abi;
#[doc(hidden)]
pub mod ffi;
#[cfg(feature = "engine")]
pub mod host;
mod package;
mod version;

#[cfg(not(feature = "engine"))]
#[doc(hidden)]
pub use crate::guest::start;
pub use package::{CustomOpRegistry, Package, Plugin};
pub use version::{PluginInfo, VersionInfo};

/// The version of minitensor that a plugin is built with.
#[doc(hidden)]
pub const MINITENSOR: &str = env!("CARGO_PKG_VERSION");
