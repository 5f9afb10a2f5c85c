//! Plugins that are shared libraries. Host and plugin share nothing but the [ABI](abi): plain tables and functions.
//!
//! The [host] loads a library and makes ops of its tables. A plugin that is written with `#[custom_op]` is built without the
//! feature `engine`: then this crate is the guest's half, in which a tensor is one of the host's, and which makes tables of ops.

pub mod abi;
#[doc(hidden)]
pub mod border;
#[cfg(feature = "engine")]
pub mod host;
