//! Plugins that are shared libraries. Host and plugin share nothing but the [ABI](abi): plain tables and functions.
//!
//! The [host] loads a library and makes ops of its tables. A plugin that is written with `#[custom_op]` is built without the
//! feature `engine`: then this crate is the guest's half, in which a tensor is one of the host's, and which makes tables of ops.

#[doc(hidden)]
pub mod abi;
#[doc(hidden)]
pub mod border;
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
